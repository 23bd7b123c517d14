"""Which joins a view cannot have: for each the reason and a way out."""

from sqlglot import exp

from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.syntax import position, refusal

OUTER = ("LEFT", "RIGHT", "FULL")
AS_A_VIEW = "TBLPROPERTIES ('storage' = 'outerjoin')"

_JOINS: dict[str, tuple[str, str]] = {
    "NATURAL": ("a new column at a source would change its meaning", "name the columns: JOIN ... USING (column)"),
    "SEMI": ("it asks whether a partner exists", "join on a key of the other table: at most one partner exists then"),
    "ANTI": ("it asks whether no partner exists", "keep both tables in views and subtract when reading them"),
}
_ALLOWED_IN_JOIN = frozenset({"this", "on", "using", "kind", "side"})


def is_outer(join: exp.Join) -> bool:
    """Whether this is LEFT, RIGHT or FULL [OUTER] JOIN."""
    return join.side in OUTER and join.kind in ("", "OUTER")


def refuse_join(join: exp.Join, *, aggregates: bool, outer: bool) -> None:
    """Refuses a join of a kind that no view has, or that one with aggregates, or one of inner joins only, has not."""
    words = [word for word in (join.method, join.side, join.kind) if word]
    name = f"{' '.join(words)} JOIN"
    for word, (reason, hint) in _JOINS.items():
        if word in words:
            raise refusal(name, reason, hint, join)
    extra = [key for key, value in join.args.items() if value and key not in _ALLOWED_IN_JOIN]
    if is_outer(join) and not extra:
        if not outer:
            raise _outer(name, join, aggregates)
    elif extra or join.side or join.kind not in ("", "INNER", "CROSS"):
        raise refusal(
            name if words else f"{extra[0].upper()} JOIN",
            "a view has inner, left, right and full joins",
            "write JOIN ... ON, LEFT JOIN ... ON, or CROSS JOIN",
            join,
        )


def _outer(name: str, join: exp.Join, aggregates: bool) -> UnsupportedClause:
    if aggregates:
        place, hint = "in a summary", f"make the outer join a view of its own, with {AS_A_VIEW}, and summarize that"
    else:
        place, hint = "in a view of inner joins", f"make it a view that stores the outer join: {AS_A_VIEW}"
    return UnsupportedClause(
        f"{name} is not supported {place}: a row without a partner comes and goes with the other side{position(join)}",
        hint,
    )
