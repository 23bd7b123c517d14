"""Queries answered from stored summaries, as if the tables of the sources were here.

    q ≺ v                 a query is one more node of the lattice: it is derived from any table above it
    cost(v) = rows · (1 + joins)                                        the cheapest of them answers

Nothing is taken on trust: no foreign key, and a hierarchy only together with the pairs that are stored.

    MIN(e), MAX(e)        over e, if the table groups by it, or over its own MIN(e) or MAX(e)
    COUNT(DISTINCT e)     over e; its own COUNT(DISTINCT e) only if each of its rows is a group of the query
    region, from a table by city      the table ⋈ DISTINCT (city, region) of the dimension: the dimension itself has a
                                      row for each store, and would repeat the cities
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from viewkeeper.sql.expressions import Expression
from viewkeeper.summary.asked import Asked, AskedTable
from viewkeeper.summary.defined import Defined
from viewkeeper.summary.derivation import ABOVE, ALSO, Derivation, Determined, derive
from viewkeeper.summary.measures import OF_ALL_VALUES, ExtremeFunction
from viewkeeper.summary.node import Extreme, Node, rest_column
from viewkeeper.summary.plan import JOIN_COST
from viewkeeper.summary.spread import spread_table
from viewkeeper.summary.star import Dimension
from viewkeeper.summary.statements import aggregate, indented, quoted, sql_of, whole_table

VALUE = "_vk_value"


@dataclass(frozen=True)
class StoredTables:
    """What one lattice has stored, all at one state."""

    lattice: str
    nodes: Sequence[Node]
    rows: Mapping[str, int]
    copies: Mapping[str, str] = field(default_factory=dict)
    """the table that holds each dimension, by relation"""
    determined: Determined | None = None


@dataclass(frozen=True)
class Pairs:
    """Attributes that a table gets from those that it groups by, through DISTINCT rows of a dimension."""

    dimension: Dimension
    copy: str
    by: tuple[tuple[str, str], ...]
    """columns of the dimension, and where the table has them"""
    added: tuple[tuple[str, str], ...]
    """columns of the dimension, and what they are called beside the table's own"""

    def sql(self, copy: str) -> str:
        columns = [column for column, _ in (*self.by, *self.added)]
        return f"SELECT DISTINCT {', '.join(map(quoted, columns))} FROM {copy}"


@dataclass(frozen=True)
class Way:
    """A stored table that answers, and how."""

    stored: StoredTables
    edge: Derivation
    extremes: tuple[str, ...]
    """MIN, MAX and COUNT(DISTINCT) as items of SELECT"""
    pairs: tuple[Pairs, ...] = ()
    spreads: tuple[tuple[str, Expression, str], ...] = ()
    """columns with Σ (e - mean)², the values that they are over, and the types of these"""

    @property
    def table(self) -> str:
        return self.edge.above.name

    @property
    def rows(self) -> int:
        return self.stored.rows[self.table]

    @property
    def joined(self) -> tuple[str, ...]:
        """The dimensions that are joined, as a reader would call them."""
        return (*self.edge.joined, *(f"distinct {pairs.dimension.short}" for pairs in self.pairs))

    @property
    def cost(self) -> float:
        return self.rows * (1 + JOIN_COST * len(self.joined))

    @property
    def reads(self) -> tuple[str, ...]:
        """All stored tables that it reads."""
        copies = [self.stored.copies[dimension.relation.name] for dimension in self.edge.joins]
        return tuple(dict.fromkeys([self.table, *copies, *(pairs.copy for pairs in self.pairs)]))


@dataclass(frozen=True)
class Answer:
    """A query with the way that was chosen for each of the summaries that it asks for."""

    asked: Asked
    ways: tuple[Way, ...]

    def sql(self, names: Callable[[Way, str], str], columns: Sequence[tuple[str, str]] = ()) -> str:
        """The statement, over tables under these names; its columns get these names and types, if any are given."""
        parts = [
            _part(table, way, partial(names, way)) for table, way in zip(self.asked.tables, self.ways, strict=True)
        ]
        shown = [quoted(column) for column in self.asked.columns]
        if columns:
            shown = [f"CAST({c} AS {type}) AS {quoted(name)}" for c, (name, type) in zip(shown, columns, strict=True)]
        elif len(parts) == 1 and not self.asked.order:
            return parts[0]
        text = f"SELECT {', '.join(shown)}\nFROM (\n{indented(_united(parts))}\n)"
        return f"{text}\n{self.asked.order}" if self.asked.order else text


def ways(asked: Defined, stored: Iterable[StoredTables]) -> list[Way]:
    """All ways to answer, the cheapest first."""
    found = [way for one in stored for node in one.nodes if (way := way_from(asked, node, one)) is not None]
    return sorted(found, key=lambda way: (way.cost, way.edge.above.hidden))


def first_sound(found: Iterable[Way], holds: Callable[[Way, Pairs], bool]) -> Way | None:
    """The first way whose pairs are pairs: each of the rows that it joins them to has one partner.

    A declared hierarchy says so of values. Of NULL it says nothing: stores without a city may be in two regions.
    """
    return next((way for way in found if all(holds(way, pairs) for pairs in way.pairs)), None)


def way_from(asked: Defined, node: Node, stored: StoredTables) -> Way | None:
    """How a stored table answers; None if it does not."""
    own: dict[str, Extreme] = {}
    values: dict[Expression, str] = {}
    for column, function, value in asked.extremes:
        if (extreme := _own_extreme(asked.node, node, function, value)) is not None:
            own[column] = extreme
        else:
            values.setdefault(value, f"_vk_value_{len(values)}")
    # What the rest is over must be at hand, as a group must.
    below = replace(asked.node, groups={**asked.node.groups, **values})
    edge = derive(below, node, determined=stored.determined)
    if edge is None or any(dimension.relation.name not in stored.copies for dimension in edge.joins):
        return None
    extremes, of_values = [], []
    for column, function, value in asked.extremes:
        if function == "spread" and column not in own:
            of_values.append((column, edge.groups[value], value.type))
            continue
        sql = _from_own(own[column]) if column in own else aggregate(function, sql_of(edge.groups[value]))
        extremes.append(f"{sql} AS {quoted(column)}")
    pairs = list(_pairs(edge, stored))
    if sum(len(one.added) for one in pairs) < len(edge.extension):
        return None
    groups = {group: edge.groups[group] for group in asked.node.groups}
    whole = replace(edge, below=asked.node, groups=groups)
    return Way(stored, whole, tuple(extremes), tuple(pairs), tuple(of_values))


def _own_extreme(asked: Node, node: Node, function: ExtremeFunction, value: Expression) -> Extreme | None:
    """The column of a table that has the extreme of each of its groups, if that is enough."""
    if function in OF_ALL_VALUES and not node.groups.keys() <= asked.groups.keys():
        return None
    return next((one for one in node.extremes if one.function == function and one.value == value), None)


def _from_own(extreme: Extreme) -> str:
    column = f"{ABOVE}.{quoted(extreme.column)}"
    if extreme.function == "distinct":
        return f"COALESCE(MAX({column}), 0L)"
    if extreme.function == "spread":
        return f"MAX({column})"
    return aggregate(extreme.function, column)


def _pairs(edge: Derivation, stored: StoredTables) -> Iterator[Pairs]:
    """What the attributes come from that the table does not group by, and its hierarchies give."""
    node = edge.above
    for dimension in edge.below.dimensions:
        added = tuple(
            (dimension.columns[column], f"{ALSO}{place}")
            for place, one in enumerate(edge.extension)
            if (column := one.is_column) in dimension.columns
        )
        if added and dimension.relation.name in stored.copies:
            by = tuple(
                (dimension.columns[name], column)
                for group, column in node.groups.items()
                if (name := group.is_column) in dimension.columns
            )
            yield Pairs(dimension, stored.copies[dimension.relation.name], by, added)


def _part(table: AskedTable, way: Way, name: Callable[[str], str]) -> str:
    """The statement of one summary."""
    made, edge = table.defined, way.edge
    dimensions = {one.path: name(way.stored.copies[one.relation.name]) for one in edge.joins}
    # Sums of DOUBLE are complete here, and have no rest.
    rests = [f"0D AS {quoted(rest_column(column))}" for one, column in edge.below.measures.items() if one.floating]
    inner = whole_table(edge, _above(way, name), dimensions, [*way.extremes, *rests])
    if way.spreads:
        inner = _with_spreads(way, inner, _above(way, name), dimensions)
    items = ", ".join(_item(column, sql) for column, sql in made.shown)
    text = f"SELECT {items}\nFROM (\n{indented(inner)}\n)"
    if made.having is not None:
        text += f"\nWHERE {made.having}"
    if not table.padded:
        return text
    items = ", ".join(_item(column, sql) for column, sql in table.padded)
    return f"SELECT {items}\nFROM (\n{indented(text)}\n)"


def _with_spreads(way: Way, rows: str, above: str, dimensions: Mapping[str, str]) -> str:
    """The rows of a summary, each with Σ (e - mean)² of the values of its group."""
    edge, node = way.edge, way.edge.below
    keys = [quoted(key) for key in node.keys]
    items, joins = ["t.*"], ""
    for place, (column, value, type) in enumerate(way.spreads):
        # The values of each group, counted.
        finer = replace(node, groups={**node.groups, value: VALUE}, measures={})
        counted = replace(edge, below=finer, groups={**edge.groups, value: value}, summed={}, computed={})
        values = f"(\n{indented(whole_table(counted, above, dimensions))}\n)"
        spread = spread_table(values, keys, {quoted(column): (quoted(VALUE), quoted(node.count), type)})
        same = " AND ".join(f"t.{key} <=> s{place}.{key}" for key in keys) or "TRUE"
        joins += f"\nJOIN (\n{indented(spread)}\n) AS s{place} ON {same}"
        items.append(f"s{place}.{quoted(column)}")
    return f"SELECT {', '.join(items)}\nFROM (\n{indented(rows)}\n) AS t{joins}"


def _item(column: str, sql: str) -> str:
    return sql if sql == quoted(column) else f"{sql} AS {quoted(column)}"


def _above(way: Way, name: Callable[[str], str]) -> str:
    """What is read: the table, with the rests of its sums and the attributes that come from pairs."""
    node, table = way.edge.above, name(way.table)
    floating = [column for measure, column in node.measures.items() if measure.floating]
    if not floating and not way.pairs:
        return table
    items = []
    for column in (*node.columns, *(extreme.column for extreme in node.extremes)):
        own = f"t.{quoted(column)}"
        whole = f"{own} + COALESCE(t.{quoted(rest_column(column))}, 0D) AS {quoted(column)}"
        items.append(whole if column in floating else own)
    text = f"\nFROM {table} AS t"
    for place, pairs in enumerate(way.pairs):
        items += [f"h{place}.{quoted(column)} AS {quoted(added)}" for column, added in pairs.added]
        same = " AND ".join(f"t.{quoted(own)} <=> h{place}.{quoted(column)}" for column, own in pairs.by)
        text += f"\nJOIN ({pairs.sql(name(pairs.copy))}) AS h{place} ON {same}"
    body = f"SELECT {', '.join(items)}{text}"
    return f"(\n{indented(body)}\n)"


def _united(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else "\nUNION ALL\n".join(f"(\n{indented(part)}\n)" for part in parts)
