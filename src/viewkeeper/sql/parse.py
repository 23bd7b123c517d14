"""From the SQL of a view to its select-project-join form.

    parse_view("SELECT o.id, c.name FROM shop.orders o JOIN crm.people c ON o.cust = c.id", catalog)

The text is parsed (`syntax.py`, `definition.py`), everything outside select-project-join is refused (`refusals.py`),
names are bound to relations and columns (`names.py`, `bound_select.py`), and what remains are operands, conditions and
output columns. A definition that may aggregate, or be an outer join, is read by `parse_summary.py`.
"""

from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.bound_select import bind_select, refuse_unnamed
from viewkeeper.sql.definition import Definition, read_definition
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.names import bind_tables
from viewkeeper.sql.refusals import refuse_unsupported
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.syntax import not_too_deep
from viewkeeper.sql.view import OutputColumn, View


def parse_view(sql: str, catalog: Catalog, *, name: str | None = None) -> View:
    """The view that a text defines: a CREATE MATERIALIZED VIEW, or a SELECT, which is then called `name`."""
    with not_too_deep():
        return joined_view(read_definition(sql, name), catalog)


def joined_view(definition: Definition, catalog: Catalog) -> View:
    """The select-project-join form of a definition."""
    select = refuse_unsupported(definition.query)
    refuse_unnamed(select)
    bound = bind_select(select, bind_tables(select, catalog))
    view = View(
        name=definition.name,
        sql=definition.sql,
        operands=bound.operands,
        conditions=bound.conditions,
        output=tuple(OutputColumn(item.name, Expression.from_node(item.node)) for item in bound.items),
        crossings=bound.crossings,
        properties=definition.properties,
    )
    refuse_disconnected(view)
    return view


def refuse_disconnected(view: View) -> None:
    """Every operand must be joined to the others by a condition, or by a CROSS JOIN that asks for all combinations."""
    edges = [view.mentions(condition) for condition in view.conditions] + [frozenset(pair) for pair in view.crossings]
    reached: frozenset[int] = frozenset({0})
    while grown := [edge for edge in edges if edge & reached and not edge <= reached]:
        reached = reached.union(*grown)
    for operand in view.operands:
        if operand.index not in reached:
            others = ", ".join(other.alias for other in view.operands if other.index in reached)
            raise UnsupportedClause(
                f"no condition joins {operand.alias} to {others}: the view would hold every combination of their rows",
                "add a condition between them, or write CROSS JOIN if that is what you mean",
            )
