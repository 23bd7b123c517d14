"""The expressions of a computed view, with the types of the columns that they are over, and its pointers."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from sqlglot import exp

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.sql.evaluation import flat_name
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.type_families import parse_type
from viewkeeper.summary.statements import quoted


class ComputedExpressions:
    """What readers see of the rows of hidden tables, joined."""

    def __init__(self, view: Definition, tables: Sequence[Definition]) -> None:
        types = {name: type for table in tables for name, type in table.columns}
        self.having = None if view.having is None else _typed(view.having, types)
        told = view.expressions or [(name, quoted(name), type) for name, type in view.columns]
        self.shown = tuple((name, _typed(sql, types), type) for name, sql, type in told)

    @property
    def can_fail(self) -> bool:
        """Whether there may be a row that cannot be shown."""
        parts = [made for _, made, _ in self.shown] + ([self.having] if self.having else [])
        return any(part.can_fail for part in parts)


def pointing_columns(view: Definition, tables: Sequence[Definition]) -> list[str]:
    """The columns that are taken from `rows`: ids, and what no copy has; for a copy has the rest too."""
    rows, *copies = tables
    copied = {name for copy in copies for name in copy.names} - set(ids_of(view))
    return [name for name in rows.names if name not in copied]


def ids_of(view: Definition) -> list[str]:
    """The columns of `rows` that point into copies."""
    assert view.computed is not None
    return [name for _, ids in view.computed.copies for name in ids]


def _typed(sql: str, types: Mapping[str, str]) -> Expression:
    node = _parsed(sql).copy()
    for column in node.find_all(exp.Column):
        column.type = parse_type(types.get(flat_name(column), ""))
    known = Expression.from_node(node)
    # The text stays as it was written: it is what the catalog says.
    return Expression(sql, known.columns, known.type, known.column_types, node)


@lru_cache(maxsize=1024)
def _parsed(sql: str) -> exp.Expr:
    return Expression(sql, frozenset()).node
