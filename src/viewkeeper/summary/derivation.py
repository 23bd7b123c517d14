"""The derives relation: how one summary is computed from another (section 5.1).

    v2 ≺ v1 ^ d1,...,dm       v2 is one SELECT ... GROUP BY over v1 joined with the dimensions d1, ..., dm

    each group of v2        is over groups of v1, or over columns of dimensions whose keys are groups of v1
    each measure of v2      is a measure of v1, or over the same: then SUM(e) is SUM(e * Y) and COUNT(e) the sum of Y
                            where e is not NULL, with Y the COUNT(*) of v1

The paper takes it that every foreign key finds its row. Sources are autonomous, so v1 must not join a dimension that v2
does not: it would have lost the facts whose row is missing. The conditions of v1 must be among those of v2, and what v2
asks beyond them must be over the same columns.

A dimension's attribute that v1's groups determine can be added to v1's summary-delta (section 5.2): with it, v2 needs
no join. The attributes that an edge relies on are its `extension`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from sqlglot import exp

from viewkeeper.sql.expressions import Expression
from viewkeeper.summary.measures import Measure
from viewkeeper.summary.node import Node
from viewkeeper.summary.star import FACT, Dimension

ABOVE = "p"
"""the alias of what a summary is derived from, in the SQL of an edge"""

ALSO = "_vk_also_"
"""how columns begin that a summary-delta has for those below it"""

Determined = Callable[[Dimension, frozenset[str]], frozenset[str]]
"""The columns of a dimension that these columns of it determine, as its hierarchy declares."""


class BrokenForeignKey(Exception):
    """Facts were to be computed by way of a dimension in which they find no row: another plan has to be taken."""

    def __init__(self, path: str, rows: int) -> None:
        super().__init__(f"{rows} rows find none in {path}")
        self.path, self.rows = path, rows


@dataclass(frozen=True)
class Derivation:
    """An edge of the lattice."""

    above: Node
    below: Node
    joins: tuple[Dimension, ...]
    on: tuple[tuple[tuple[str, str], ...], ...]
    """for each join: pairs of a column, such as `p.storeID`, and the column of the key"""
    groups: Mapping[Expression, Expression]
    """each group of `below`, over `p` and the joined dimensions `d0`, `d1`, ..."""
    where: tuple[Expression, ...]
    summed: Mapping[Measure, str]
    """measures that `above` has: its column"""
    computed: Mapping[Measure, Expression]
    """measures over the groups of `above` and the dimensions: their argument"""
    extension: tuple[Expression, ...] = ()
    """columns that the summary-delta of `above` must have beside its groups"""

    @property
    def joined(self) -> tuple[str, ...]:
        return tuple(dimension.short for dimension in self.joins)

    @property
    def relies_on(self) -> frozenset[str]:
        """The paths of the dimensions in which every fact must find its row: `above` joins them, `below` does not."""
        return self.above.paths - self.below.paths

    @cached_property
    def carried(self) -> tuple[str, ...]:
        """The columns of `above` that it has for those below it only, and that this edge uses."""
        return tuple(
            column
            for column in (*self.above.groups.values(), *self.above.measures.values())
            if column.startswith(ALSO) and self.uses(column)
        )

    def uses(self, column: str) -> bool:
        """Whether the query of the edge has a column of the table above."""
        name = f"{ABOVE}.{column}"
        expressions = (*self.groups.values(), *self.where, *self.computed.values())
        return (
            column in self.summed.values()
            or any(name in one.columns for one in expressions)
            or any(name == sql for on in self.on for sql, _ in on)
        )


def derive(
    below: Node,
    above: Node,
    *,
    trusting: frozenset[str] = frozenset(),
    determined: Determined | None = None,
) -> Derivation | None:
    """How `below` is derived from `above`; None if it is not.

    `trusting` has the paths of dimensions in which every fact is known to find its row. `determined` tells which
    attributes may be added to the summary-delta of `above`; without it none may.
    """
    if below.fact != above.fact or not above.paths <= below.paths | trusting or not above.where <= below.where:
        return None
    resolver = _Resolver(below, above, determined)
    try:
        groups = {group: resolver.resolved(group) for group in below.groups}
        where = tuple(resolver.resolved(condition) for condition in sorted(below.where - above.where, key=str))
        summed = {measure: above.measures[measure] for measure in below.measures if measure in above.measures}
        computed = {m: resolver.resolved(m.expression) for m in below.measures if m not in above.measures}
    except _NotDerivable:
        return None
    # A fact that has no row in a dimension is in no table that joins it, whether or not a column of it is used.
    for dimension in below.dimensions:
        if dimension.path not in above.paths:
            try:
                resolver.join(dimension)
            except _NotDerivable:
                return None
    return Derivation(
        above,
        below,
        tuple(resolver.joins),
        tuple(resolver.on),
        groups,
        where,
        summed,
        computed,
        tuple(resolver.extension),
    )


def extended(node: Node, extension: Iterable[Expression]) -> Node:
    """The node with attributes added to its groups, as its summary-delta has them."""
    added = {one: f"{ALSO}{index}" for index, one in enumerate(extension) if one not in node.groups}
    return replace(node, groups={**node.groups, **added}) if added else node


class _NotDerivable(Exception):
    pass


class _Resolver:
    """Expressions of a star, as SQL over a node and joined dimensions."""

    def __init__(self, below: Node, above: Node, determined: Determined | None) -> None:
        self._above = above
        self._determined = determined
        self._dimensions = {dimension.path: dimension for dimension in below.dimensions}
        self._by_text = {(group.sql, group.column_types): column for group, column in above.groups.items()}
        self.joins: list[Dimension] = []
        self.on: list[tuple[tuple[str, str], ...]] = []
        self.extension: list[Expression] = []

    def resolved(self, expression: Expression) -> Expression:
        """Whole groups first, then columns; a part of an expression may be a group too."""
        stored = self._above.groups.get(expression)
        if stored is not None:
            return _as_column(ABOVE, stored, expression.type)
        if (name := expression.is_column) is not None and name.startswith(f"{FACT}."):
            raise _NotDerivable
        return Expression.from_node(expression.node.copy().transform(self._replaced))

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal | exp.Identifier | exp.DataType):
            return node
        expression = Expression.from_node(node)
        column = self._by_text.get((expression.sql, expression.column_types))
        if column is not None and expression.columns:
            return _column(ABOVE, column, node)
        return self._column(node, expression) if isinstance(node, exp.Column) else node

    def _column(self, node: exp.Column, expression: Expression) -> exp.Expr:
        if node.table != FACT and ">" not in node.table:
            return node  # an alias of the statement: what stood here is replaced already
        dimension = self._dimensions.get(node.table)
        if node.table == FACT or dimension is None:
            raise _NotDerivable
        if self._is_determined(dimension, expression):
            if expression not in self.extension:
                self.extension.append(expression)
            return _column(ABOVE, f"{ALSO}{self.extension.index(expression)}", node)
        return _column(self.join(dimension), node.name, node)

    def _is_determined(self, dimension: Dimension, expression: Expression) -> bool:
        """Whether the summary-delta above may carry the column: it joins the dimension, and grows no groups by it."""
        if self._determined is None or dimension.path not in self._above.paths:
            return False
        grouped = frozenset(
            bare for flat, bare in dimension.columns.items() if any(g.is_column == flat for g in self._above.groups)
        )
        name = expression.is_column
        return name is not None and dimension.columns[name] in self._determined(dimension, grouped)

    def join(self, dimension: Dimension) -> str:
        """The alias of a dimension, joined if it was not."""
        if dimension not in self.joins:
            # The joins on the way to it come first.
            on = tuple((self._key(column), key) for column, key in dimension.on)
            self.joins.append(dimension)
            self.on.append(on)
        return f"d{self.joins.index(dimension)}"

    def _key(self, column: str) -> str:
        for group, stored in self._above.groups.items():
            if group.is_column == column:
                return f"{ABOVE}.{stored}"
        path = column.partition(".")[0]
        if path not in self._dimensions:
            raise _NotDerivable
        return f"{self.join(self._dimensions[path])}.{self._dimensions[path].columns[column]}"


@lru_cache(maxsize=4096)
def _as_column(alias: str, name: str, type: str) -> Expression:
    return Expression.column(f"{alias}.{name}", type)


def _column(alias: str, name: str, instead_of: exp.Expr) -> exp.Column:
    """A column of the statement, of the type of what it stands for."""
    column = exp.column(exp.to_identifier(name, quoted=True), table=alias)
    column.type = instead_of.type
    return column
