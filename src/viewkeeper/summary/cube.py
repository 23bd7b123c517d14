"""A cube over a fact: all the summaries that its dimensions allow, and which of them come from which.

    point     a set of attributes, none of which another one determines        storeID, or city, or region, or none
    p → q     q comes from p:    attributes(q) ⊆ what attributes(p) determine
                                 tables(p) ⊆ tables(q)

With a declared hierarchy that is the combined lattice of section 3.3 (figure 5). A point joins only the tables that its
attributes are columns of, as users do. A fact that has no row in stores is in no point by city, so a point without
stores does not come from it: the second condition is stricter than the paper, which takes it that every foreign key
finds its row. The top is over the fact alone, or stands for the hidden table that is, so that all points come from it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod

import sqlglot
from sqlglot import exp

from viewkeeper.errors import DefinitionError, SyntaxProblem, UnsupportedClause, UsageError
from viewkeeper.sql.aggregate_calls import has_call
from viewkeeper.sql.syntax import ViewDialect, spark_sql
from viewkeeper.summary.cube_lattice import Edge, Lattice, LatticeNode
from viewkeeper.summary.hierarchies import Hierarchy
from viewkeeper.summary.star_tables import StarColumn, StarTables
from viewkeeper.summary.statements import quoted

MOST_POINTS = 512
HierarchyOf = Callable[[str], Hierarchy | None]
"""The hierarchy of a relation, if one is declared."""


@dataclass(frozen=True)
class Cube:
    """The attributes by what they are called in the tables, and measures as items of SELECT."""

    star: StarTables
    attributes: Mapping[str, StarColumn]
    measures: tuple[exp.Expr, ...]
    hierarchy: HierarchyOf

    @cached_property
    def points(self) -> tuple[LatticeNode, ...]:
        """All of them; the first is the top."""
        factors = [self._factor(labels) for labels in self._dimensions()]
        if prod(len(factor) for factor in factors) > MOST_POINTS:
            raise UsageError(
                f"the cube would have {prod(len(factor) for factor in factors):,} points",
                f"name fewer dimensions, or declare hierarchies with the source: {MOST_POINTS} are the most",
            )
        return tuple(LatticeNode(tuple(label for part in parts for label in part)) for parts in product(*factors))

    @property
    def top(self) -> LatticeNode:
        return self.points[0]

    @cached_property
    def lattice(self) -> Lattice[LatticeNode]:
        """Which points come from which."""
        determined = [self.determined(point.attributes) for point in self.points]
        tables = [self.tables(point) for point in self.points]

        def derives(above: int, below: int) -> bool:
            within = self.points[below].attributes <= determined[above] and tables[above] <= tables[below]
            return above == 0 or within

        places = range(len(self.points))
        edges = [
            Edge(self.points[above], self.points[below])
            for above in places
            for below in places
            # Of two that come from each other the one that is first is taken to be above.
            if above != below and derives(above, below) and (above < below or not derives(below, above))
        ]
        return Lattice(self.points, tuple(edges))

    # --- what belongs together ---

    def _dimensions(self) -> list[list[str]]:
        """The attributes of each table; those by which the fact refers to it are among them."""
        keys: dict[str, str] = {}
        for alias in self.star.needed(column.table for column in self.attributes.values()):
            table = self.star.tables[alias]
            if table.before == self.star.fact.alias and len(table.on) == 1:
                keys.setdefault(table.on[0][0], alias)
        found: dict[tuple[str, str], list[str]] = {}
        for label, column in self.attributes.items():
            if column.table == self.star.fact.alias:
                owner = ("", keys[column.column]) if column.column in keys else ("fact", column.column)
            else:
                owner = ("", column.table)
            found.setdefault(owner, []).append(label)
        return list(found.values())

    def _factor(self, labels: Sequence[str]) -> list[tuple[str, ...]]:
        """Every set of attributes in which none follows from the others, the finest first."""
        sets = [some for size in range(len(labels), -1, -1) for some in combinations(labels, size)]
        plain = [some for some in sets if not any(one in self.determined(frozenset(some) - {one}) for one in some)]
        return sorted(plain, key=lambda some: -len(self.determined(frozenset(some)) & set(labels)))

    def determined(self, labels: frozenset[str]) -> frozenset[str]:
        """The attributes that these determine: through keys that they are, and through hierarchies."""
        known = {self.attributes[label] for label in labels}
        whole: set[str] = set()
        while True:
            before = len(known), len(whole)
            for table in self.star.tables.values():
                if table.before is not None and all(
                    StarColumn(table.before, own) in known or table.before in whole for own, _ in table.on
                ):
                    whole.add(table.alias)
                hierarchy = self.hierarchy(table.relation.name) if table.before is not None else None
                own_columns = [one.column for one in known if one.table == table.alias]
                if hierarchy is not None and own_columns:
                    known |= {StarColumn(table.alias, column) for column in hierarchy.closure(own_columns)}
            if (len(known), len(whole)) == before:
                return frozenset(
                    label for label, column in self.attributes.items() if column in known or column.table in whole
                )

    def tables(self, point: LatticeNode) -> frozenset[str]:
        """The tables that a point joins with the fact."""
        used = [self.attributes[label].table for label in point.attributes]
        return self.star.needed([*used, *self._of_measures])

    @cached_property
    def _of_measures(self) -> frozenset[str]:
        return frozenset(column.table for one in self.measures for column in one.find_all(exp.Column))

    @property
    def of_fact(self) -> tuple[str, ...]:
        """The columns of the fact that all points and joins need."""
        fact = self.star.fact.alias
        columns = [column.column for column in self.attributes.values() if column.table == fact]
        for alias in self.tables(LatticeNode(tuple(self.attributes))):
            table = self.star.tables[alias]
            columns += [own for own, _ in table.on if table.before == fact]
        return tuple(dict.fromkeys(columns))

    @property
    def of_hidden(self) -> tuple[str, ...]:
        """What the hidden table over the fact alone groups by; empty if there is none.

        SUM(qty * cost) can be computed behind the join with items if it has each qty.
        """
        if not self.tables(self.top):
            return ()
        columns = list(self.of_fact)
        for measure in self.measures:
            tables = {column.table for column in measure.find_all(exp.Column)}
            if tables - {self.star.fact.alias}:
                columns += [one.name for one in measure.find_all(exp.Column) if one.table == self.star.fact.alias]
        return tuple(dict.fromkeys(columns))

    # --- SQL ---

    def name(self, point: LatticeNode, prefix: str) -> str:
        """What the table of a point is called."""
        return re.sub(r"\W", "_", "_".join([prefix, *(point.names or ["total"])])).lower()

    def select(self, point: LatticeNode) -> str:
        """The query of a point."""
        groups = [f"{_written(self.attributes[label])} AS {quoted(label)}" for label in point.names]
        items = [*groups, *map(spark_sql, self.measures)]
        text = (
            f"SELECT {', '.join(items)} FROM {_table(self.star.fact.relation.name)} AS {quoted(self.star.fact.alias)}"
        )
        needed = self.tables(point)
        for table in self.star.tables.values():
            if table.alias in needed:
                assert table.before is not None
                same = [
                    f"{_written(StarColumn(table.before, own))} = {_written(StarColumn(table.alias, key))}"
                    for own, key in table.on
                ]
                text += f" JOIN {_table(table.relation.name)} AS {quoted(table.alias)} ON {' AND '.join(same)}"
        if groups:
            text += f" GROUP BY {', '.join(_written(self.attributes[label]) for label in point.names)}"
        return text

    def create(self, point: LatticeNode, prefix: str, properties: Mapping[str, str]) -> str:
        """The statement that creates the table of a point."""
        listed = ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in properties.items())
        told = f" TBLPROPERTIES ({listed})" if properties else ""
        return f"CREATE MATERIALIZED VIEW {quoted(self.name(point, prefix))}{told} AS {self.select(point)}"


def read_cube(star: StarTables, dimensions: Sequence[str], measures: str, hierarchy: HierarchyOf) -> Cube:
    """The cube over a fact; an error for a name that is unknown or ambiguous, and for what is no measure."""
    if not dimensions:
        raise UsageError("a cube has at least one dimension", "name columns of the fact, or table.column")
    columns: dict[StarColumn, str] = {}
    for name in dimensions:
        column = star.find(name)
        if column in columns:
            raise UsageError(f"{name} is named twice", "name each dimension once")
        columns[column] = name
    short = [column.column.lower() for column in columns]
    labels = {
        column.column if short.count(column.column.lower()) == 1 else f"{column.table}_{column.column}": column
        for column in columns
    }
    return Cube(star, labels, tuple(_measures(star, measures)), hierarchy)


def _measures(star: StarTables, text: str) -> Iterable[exp.Expr]:
    try:
        select = sqlglot.parse_one(f"SELECT {text}", dialect=ViewDialect)
    except (sqlglot.ParseError, sqlglot.TokenError) as error:
        raise SyntaxProblem(
            f"the measures are not understood: {text}", "write for example COUNT(*) AS n, SUM(qty) AS q"
        ) from error
    if not isinstance(select, exp.Select) or [key for key, value in select.args.items() if value] != ["expressions"]:
        raise UnsupportedClause(
            f"the measures are more than a list: {text}", "write for example COUNT(*) AS n, SUM(qty) AS q"
        )
    for item in select.expressions:
        if not has_call(item):
            raise DefinitionError(
                f"the measure {spark_sql(item)} is no aggregate",
                "write for example COUNT(*) AS n, SUM(qty) AS q; what is grouped by is a dimension",
            )
        if not isinstance(item, exp.Alias):
            raise DefinitionError(f"the measure {spark_sql(item)} has no name", f"write {spark_sql(item)} AS name")
        for column in list(item.find_all(exp.Column)):
            found = star.find(".".join(part.name for part in column.parts))
            column.replace(exp.column(found.column, table=found.table, quoted=True))
        yield item


def _written(column: StarColumn) -> str:
    return f"{quoted(column.table)}.{quoted(column.column)}"


def _table(name: str) -> str:
    return ".".join(map(quoted, name.split(".")))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
