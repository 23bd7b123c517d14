"""From the SQL of a view with outer joins to its steps.

    SELECT o.id, p.name FROM shop.orders o LEFT JOIN crm.people p ON o.cust = p.id

The text is refused and bound as that of an inner join is; then every condition stays with the join in whose ON it
stands. All joins are read from left to right, and each must have an equality by which partners are found.
"""

from sqlglot import exp

from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.sql.bound_select import bind_select, refuse_unnamed
from viewkeeper.sql.definition import Definition
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.join_refusals import is_outer
from viewkeeper.sql.names import bind_tables
from viewkeeper.sql.outer_join import JoinKind, JoinStep, OuterJoinView
from viewkeeper.sql.refusals import refuse_unsupported
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.syntax import position
from viewkeeper.sql.view import OutputColumn


def has_outer_join(query: exp.Expr) -> bool:
    """Whether there is a LEFT, RIGHT or FULL JOIN anywhere in a query."""
    return any(is_outer(join) for join in query.find_all(exp.Join))


def outer_join_view(definition: Definition, catalog: Catalog) -> OuterJoinView:
    """The form of a definition that has outer joins and does not aggregate."""
    select = refuse_unsupported(definition.query, outer=True)
    joins = select.args.get("joins") or []
    for join in joins:
        _refuse_combinations(join)
    kinds = [JoinKind(join.side.lower()) if join.side else JoinKind.INNER for join in joins]
    refuse_unnamed(select)
    bound = bind_select(select, bind_tables(select, catalog))
    view = OuterJoinView(
        name=definition.name,
        sql=definition.sql,
        operands=bound.operands,
        steps=tuple(map(JoinStep, kinds, bound.operands[1:], bound.on)),
        where=bound.where,
        output=tuple(OutputColumn(item.name, Expression.from_node(item.node)) for item in bound.items),
        properties=definition.properties,
    )
    for step in view.steps:
        _refuse_later(view, step)
        _refuse_unequal(view, step)
    return view


def _refuse_combinations(join: exp.Join) -> None:
    """Refuses a join of everything with everything: beside an outer join it would not stay within its own rows."""
    if join.kind == "CROSS" or not (join.args.get("on") or join.args.get("using")):
        what = "CROSS JOIN" if join.kind == "CROSS" else "a table without ON"
        raise UnsupportedClause(
            f"{what} is not supported beside an outer join: all its rows would be partners{position(join)}",
            "write JOIN ... ON with an equality, or make the outer join a view of its own",
        )


def _refuse_later(view: OuterJoinView, step: JoinStep) -> None:
    for condition in step.conditions:
        for index in sorted(view.mentions(condition)):
            later = view.operands[index]
            if index > step.operand.index:
                raise DefinitionError(
                    f"ON of {step.operand.alias} uses a column of {later.alias}, which is joined after it"
                    f"{position(condition.node)}",
                    f"move the condition into ON of {later.alias}, or join {later.alias} first",
                )


def _refuse_unequal(view: OuterJoinView, step: JoinStep) -> None:
    if not step.equalities:
        earlier = ", ".join(operand.alias for operand in view.operands[: step.operand.index])
        written = " AND ".join(map(str, step.conditions)) or "TRUE"
        raise UnsupportedClause(
            f"{step.operand.alias} is joined to {earlier} ON {written}, without an equality of two columns: beside an "
            "outer join, partners are found by equal values",
            f"add a condition such as {view.operands[0].columns[0]} = {step.operand.columns[0]}, between columns of "
            "one type that is not DOUBLE or FLOAT; or make the joins before it a view of their own",
        )
