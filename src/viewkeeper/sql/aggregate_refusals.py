"""Which aggregate calls a summary table cannot have: the reason and a way out for each.

distributive    COUNT, SUM                       the sum over all rows is the sum of the sums over parts
algebraic       AVG, VAR_*, STDDEV_*             computed from a few distributive ones
kept            MIN, MAX, COUNT(DISTINCT e)      from a hidden table of (group, e, count)
holistic        the rest                         needs all rows of a group again after every deletion
"""

from collections.abc import Iterable

from sqlglot import exp

from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.aggregate_calls import FUNCTIONS, GROUPING, UNKNOWN_TO_SQLGLOT, call_name, is_call
from viewkeeper.sql.syntax import position, spark_sql

_HOLISTIC = "it is holistic, so that what it is for parts of a group cannot be put together when rows are deleted"
_KEEP_ROWS = "keep the rows in a view without GROUP BY, and compute it when reading that view"
_UNDETERMINED = "which row it takes is not determined, so that every refresh could choose another"
_NO_SHARED_SUMS = "it is made of sums that no other function needs, and not maintained"
_SUMS = "keep the sums that it is made of, such as SUM(x), SUM(y), SUM(x * y) and COUNT(*), and compute it when reading"
_BOOLEAN = "it is not maintained under this name"

_MOMENTS = (
    exp.Corr, exp.CovarPop, exp.CovarSamp, exp.Skewness, exp.Kurtosis, exp.RegrAvgx, exp.RegrAvgy, exp.RegrCount,
    exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
)  # fmt: skip

# By class, or by name where sqlglot has none: why not, and what instead.
_REFUSED: dict[type[exp.Expr] | str, tuple[str, str]] = {
    **dict.fromkeys(
        (exp.LogicalAnd, "every"), (_BOOLEAN, "write MIN of the condition: FALSE is smaller, so it is TRUE if all are")
    ),
    **dict.fromkeys(
        (exp.LogicalOr, exp.Any, "some"),
        (_BOOLEAN, "write MAX of the condition: TRUE is larger, so it is TRUE if any is"),
    ),
    exp.ApproxDistinct: (
        "an estimate cannot be corrected when rows are deleted",
        "write COUNT(DISTINCT x): it is exact",
    ),
    **dict.fromkeys(
        (exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.AnyValue), (_UNDETERMINED, "write MIN or MAX")
    ),
    **dict.fromkeys(
        (exp.ArgMax, exp.ArgMin),
        (_HOLISTIC, "keep MAX or MIN of the second argument, and join it to the rows when reading"),
    ),
    exp.ArrayUniqueAgg: (_HOLISTIC, "define a view with SELECT DISTINCT of the groups and the value"),
    **dict.fromkeys(_MOMENTS, (_NO_SHARED_SUMS, _SUMS)),
    **dict.fromkeys(("try_sum", "try_avg"), ("an overflow stops a refresh instead", "write SUM or AVG")),
}
_WINDOW_ONLY = (exp.CumeDist, exp.DenseRank, exp.Lag, exp.Lead, exp.NthValue, exp.Ntile, exp.PercentRank, exp.Rank)


def refuse_calls(select: exp.Select) -> None:
    """Refuses every aggregate call of a SELECT that cannot be maintained, or stands where none can."""
    for place, nodes in _places_without(select):
        for node in nodes:
            if call := next((part for part in node.walk() if is_call(part) or isinstance(part, GROUPING)), None):
                hint = "put the condition into HAVING" if place in ("ON", "WHERE") else "leave the aggregate out"
                raise _refusal(
                    f"the aggregate {call_name(call)} in {place}", "groups are not made yet there", hint, call
                )
    for node in select.walk():
        if is_call(node):
            _refuse_call(node)


def _places_without(select: exp.Select) -> Iterable[tuple[str, list[exp.Expr]]]:
    joins = select.args.get("joins") or ()
    yield "ON", [join.args["on"] for join in joins if join.args.get("on")]
    yield "WHERE", [clause for clause in [select.args.get("where")] if clause]
    yield "GROUP BY", [clause for clause in [select.args.get("group")] if clause]
    yield "FILTER", [node.expression for node in select.find_all(exp.Filter)]


def _refuse_call(node: exp.Expr) -> None:
    name = call_name(node)
    if isinstance(node, _WINDOW_ONLY):
        raise _refusal(
            f"a window function ({spark_sql(node)})",
            "one change can move every row of a window",
            "compute the window when reading the view",
            node,
        )
    key = node.name.lower() if isinstance(node, exp.Anonymous) else type(node)
    known = key in FUNCTIONS or key is exp.CountIf or (isinstance(key, str) and UNKNOWN_TO_SQLGLOT[key])
    if not known:
        reason, hint = _REFUSED.get(key, (_HOLISTIC, _KEEP_ROWS))
        raise _refusal(f"the aggregate {name}", reason, hint, node)
    parent = node.parent
    if isinstance(parent, (exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        clause = {exp.IgnoreNulls: "IGNORE NULLS", exp.RespectNulls: "RESPECT NULLS"}.get(type(parent), "WITHIN GROUP")
        raise _refusal(f"{clause} after {name}", "it has no meaning there", "leave it out", node)
    inner = next((part for part in node.walk() if part is not node and is_call(part)), None)
    if inner is not None or node.find(*GROUPING):
        what = f"{name} of {call_name(inner)}" if inner is not None else f"{name} of GROUPING"
        raise _refusal(
            what, "it aggregates twice", "define a view with the inner one, and aggregate that when reading it", node
        )
    _refuse_arguments(node, name)


def _refuse_arguments(node: exp.Expr, name: str) -> None:
    arguments, distinct = _arguments(node)
    if any(isinstance(argument, exp.Order) for argument in arguments):
        raise _refusal(f"ORDER BY inside {name}", "the order of the rows does not matter to it", "leave it out", node)
    starred = any(argument.is_star for argument in arguments)
    if isinstance(node, exp.Count) and (len(arguments) > 1 or starred):
        if isinstance(node.this, exp.Star):
            return
        raise _refusal(
            spark_sql(node),
            "a row with a NULL in any of several values does not count, and a count here has one value",
            "make one value of them, which is NULL if one is: COUNT(DISTINCT CONCAT(a, '/', b))"
            if distinct
            else "write COUNT(CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN 1 END)",
            node,
        )
    if len(arguments) != 1:
        hint = "write COUNT(*)" if isinstance(node, exp.Count) else f"write {name}(column)"
        raise _refusal(f"{name} of {len(arguments)} arguments", "it takes one", hint, node)
    if starred:
        raise _refusal(f"{name}(*)", "it takes one value of each row", f"write {name}(column)", node)
    if distinct and not isinstance(node, (exp.Count, exp.Min, exp.Max)):
        raise _refusal(
            f"{name}(DISTINCT {spark_sql(arguments[0])})",
            "a value leaves it only with its last duplicate, and that is not maintained",
            f"define a view with SELECT DISTINCT of the groups and the value, and compute {name} when reading it",
            node,
        )


def _arguments(node: exp.Expr) -> tuple[list[exp.Expr], bool]:
    """The arguments of a call, and whether DISTINCT stands before them."""
    given = node.expressions if isinstance(node, exp.Anonymous) else [node.args.get("this"), *node.expressions]
    distinct = bool(given) and isinstance(given[0], exp.Distinct)
    if distinct:
        given = given[0].expressions
    arguments: list[exp.Expr] = []
    for argument in given:
        arguments += argument.expressions if isinstance(argument, exp.Tuple) else [argument] if argument else []
    return arguments, distinct


def _refusal(what: str, reason: str, hint: str, node: exp.Expr) -> UnsupportedClause:
    return UnsupportedClause(f"{what} is not supported in a view: {reason}{position(node)}", hint)
