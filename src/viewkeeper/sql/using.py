"""What a column that is joined by USING stands for.

    INNER, LEFT    the column of the left side
    RIGHT          the column of the right side
    FULL           COALESCE(left, right)

The left side may be a join itself, and what its column stands for follows from its own joins. sqlglot resolves the
names and expands `*`, but writes the COALESCE of all columns for every kind of join, and compares with the first one;
that is put right here.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from viewkeeper.sql.view import Operand

# Marks a COALESCE that is not sqlglot's: the user wrote it, or it is what a column of USING stands for.
_WRITTEN, _MEANT = "written", "meant"

# From a column in lower case to the aliases whose columns it stands for: the first of them that is not NULL.
Meaning = Mapping[str, tuple[str, ...]]


def columns_of_using(select: exp.Select) -> list[tuple[str, ...]]:
    """The columns of USING, for each join; sqlglot removes them from the tree. What the user wrote is marked in it."""
    for node in select.find_all(exp.Coalesce):
        node.meta[_WRITTEN] = True
    joins = select.args.get("joins") or ()
    return [tuple(name.name.lower() for name in join.args.get("using") or ()) for join in joins]


def resolve_using(tree: exp.Select, operands: Sequence[Operand], using: Sequence[tuple[str, ...]]) -> None:
    """Put what the columns of USING stand for into a tree that sqlglot has qualified."""
    joins = tree.args.get("joins") or []
    meanings = _meanings(operands, [join.side for join in joins], using)
    for operand, join, names, left in zip(operands[1:], joins, using, meanings, strict=False):
        if names:
            join.set("on", exp.and_(*(_meant(left, name).eq(_column(operand.alias, name)) for name in names)))
    for node in list(tree.find_all(exp.Coalesce)):
        if node.meta.keys().isdisjoint((_WRITTEN, _MEANT)):
            within = node.find_ancestor(exp.Join)
            # In ON, the tables up to this one are joined; elsewhere all of them are.
            place = next((index + 1 for index, join in enumerate(joins) if join is within), -1)
            node.replace(_meant(meanings[place], node.this.name))


def own_name(node: exp.Expr) -> str | None:
    """The name that an output column has without AS."""
    column = node.this if _MEANT in node.meta else node
    return column.name if isinstance(column, exp.Column) else None


def _meanings(operands: Sequence[Operand], sides: Sequence[str], using: Sequence[tuple[str, ...]]) -> list[Meaning]:
    """The meaning of bare names after each operand. Of a name that is ambiguous it says nothing: that is refused."""
    first, *others = operands
    meanings: list[Meaning] = [{column.lower(): (first.alias,) for column in first.relation.there}]
    for operand, side, names in zip(others, sides, using, strict=True):
        left = meanings[-1]
        new = {column.lower(): (operand.alias,) for column in operand.relation.there}
        joined = {name: _combined(side, left[name], operand.alias) for name in names}
        meanings.append({**new, **left, **joined})
    return meanings


def _combined(side: str, left: tuple[str, ...], right: str) -> tuple[str, ...]:
    if side == "RIGHT":
        return (right,)
    return (*left, right) if side == "FULL" else left


def _meant(meaning: Meaning, name: str) -> exp.Expr:
    first, *others = (_column(alias, name) for alias in meaning[name])
    if not others:
        return first
    node = exp.Coalesce(this=first, expressions=others)
    node.meta[_MEANT] = True
    return node


def _column(alias: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))
