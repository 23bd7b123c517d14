"""A view as SQL text again: one canonical SELECT, in the dialect of the engine that is to run it."""

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from viewkeeper.errors import ExpressionError
from viewkeeper.sql.syntax import ViewDialect
from viewkeeper.sql.view import View


def render(view: View, dialect: str = "spark") -> str:
    """SELECT ... FROM source.table AS alias, ... WHERE ...; parsing it gives the same view."""
    try:
        writer = ViewDialect if dialect == "spark" else dialect
        return select_of(view).sql(writer, comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.UnsupportedError as error:
        raise ExpressionError(f"{dialect} cannot run {view.name}: {error}", "run it on Spark") from error


def select_of(view: View, tables: Mapping[str, exp.Expr] | None = None) -> exp.Select:
    """The same as a tree; `tables` has what is to stand for a relation in FROM instead of its name."""
    select = exp.Select(
        expressions=[
            exp.alias_(column.expression.node.copy(), exp.to_identifier(column.name, quoted=True))
            for column in view.output
        ]
    )
    crossed = {new for _, new in view.crossings}
    for operand in view.operands:
        named = (tables or {}).get(operand.relation.name) or table_of(operand.relation.name)
        table = exp.alias_(named, exp.to_identifier(operand.alias, quoted=True), table=True)
        if operand.index == 0:
            select.set("from_", exp.From(this=table))
        else:
            select.append("joins", exp.Join(this=table, kind="CROSS" if operand.index in crossed else None))
    if view.conditions:
        select.set("where", exp.Where(this=exp.and_(*(condition.node for condition in view.conditions))))
    return select


def table_of(name: str) -> exp.Table:
    """`source.table` as it stands in FROM."""
    *qualifiers, table = (exp.to_identifier(part, quoted=True) for part in name.split("."))
    catalog, database = [None, None, *qualifiers][-2:]
    return exp.Table(this=table, db=database, catalog=catalog)
