"""One table of a lattice, explained: what it stores, what it is computed from and why, by which statements."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from viewkeeper.explaining.summary_explanation import Choice, Column, Serving, Shown, Statements, Table
from viewkeeper.lake.log.columns import HIDDEN, Columns
from viewkeeper.planner.overview import Overview, Told
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.summaries.ways import Way, measure_name, trusting_way, ways_of
from viewkeeper.sql.summary_view import readable
from viewkeeper.summary.explained_refresh import refreshed
from viewkeeper.summary.explained_statements import (
    TableNames,
    carried,
    prepared,
    propagated,
    propagated_with_dimensions,
)
from viewkeeper.summary.node import Extreme, Node, rest_column
from viewkeeper.summary.plan import CHANGES, Plan
from viewkeeper.summary.statements import quoted, stored_types


@dataclass(frozen=True)
class LatticeExplained:
    """What the explanations of all tables of a lattice rest on."""

    overview: Overview
    lattice: Lattice

    @cached_property
    def plan(self) -> Plan:
        return self.overview.plan(self.lattice)

    @cached_property
    def moving_plan(self) -> Plan:
        """The plan of a propagation in which dimensions change too."""
        return self.lattice.moving.plan(self.overview.expected(self.lattice))

    @cached_property
    def ways(self) -> list[Way]:
        return ways_of(self.lattice, self.plan)

    @cached_property
    def last_refresh(self) -> Told | None:
        return self.overview.last_refresh(self.lattice)

    @cached_property
    def _names(self) -> TableNames:
        return TableNames.of(self.lattice.fact.name, self.lattice.nodes.values())

    def table(self, name: str) -> Table:
        """One table of the lattice, by its name."""
        node, stored = self.lattice.nodes[name], self.lattice.tables.get(name)
        shown = stored.defined.shown if stored is not None and not node.hidden else ()
        choices = self._choices(name)
        return Table(
            name,
            node.hidden,
            stored is not None,
            group_by(node),
            self.overview.rows(name),
            columns_of(node, stored.definition.columns if stored is not None else tuple(stored_types(node).items())),
            tuple(Shown(column, sql) for column, sql in shown if sql != quoted(column)),
            stored.defined.having if stored is not None and not node.hidden else None,
            tuple(way for way in self.ways if way.below == name and not way.relies_on),
            tuple(way for way in self.ways if way.above == name and not way.relies_on),
            self._not_relied_upon(name),
            self._served_by(node),
            choices,
            _why(choices),
            self._statements(node),
            tuple(map(when_extreme_goes, node.extremes)),
            self.overview.expected(self.lattice)(name),
            (self.last_refresh.figures.get("tables", {}) if self.last_refresh else {}).get(name),
        )

    def _choices(self, name: str) -> tuple[Choice, ...]:
        chosen = self.plan.edge(name).above.name
        return tuple(
            Choice(one.above, one.joins, one.rows, one.cost, one.above == chosen) for one in self.plan.considered[name]
        )

    def _not_relied_upon(self, name: str) -> tuple[Way, ...]:
        considered = {choice.above for choice in self.plan.considered[name]}
        ways = (
            trusting_way(self.lattice, other, name) for other in self.lattice.nodes if other not in {name, *considered}
        )
        return tuple(way for way in ways if way is not None)

    def _served_by(self, node: Node) -> tuple[Serving, ...]:
        behind = {extreme.node for extreme in node.extremes}
        above = {edge.above.name for each in (node.name, *behind) for edge in self.lattice.lineage.ways(each)}
        roots = [name for name in above if node.dimensions and is_root(self.lattice, name)]
        return tuple(
            Serving(
                name,
                _serves(node, self.lattice.nodes[name]),
                self.lattice.nodes[name].hidden,
                self.lattice.nodes[name].stored,
                self.overview.rows(name),
            )
            for name in self.lattice.nodes
            if name in behind or name in roots
        )

    def _statements(self, node: Node) -> Statements:
        edge = self.plan.edge(node.name)
        moving = self.moving_plan.edge(node.name)
        whole = {
            name: next(way for way in self.lattice.loading.ways(name) if way.above.name == CHANGES)
            for name in self.lattice.virtual
        }
        add_up = bool(carried(edge) or carried(moving)) or self.lattice.deferred
        return Statements(
            prepared(node, self.lattice.lineage.changes),
            propagated(edge, self._names),
            propagated_with_dimensions(moving, self._names),
            refreshed(node, self.lattice.nodes, self._names, add_up=add_up, whole=whole),
        )


# --- what is stored ---


def group_by(node: Node) -> tuple[str, ...]:
    """The attributes, as a reader would write them."""
    return tuple(map(readable, node.groups))


def columns_of(node: Node, stored: Columns) -> tuple[Column, ...]:
    """The stored columns, and what each of them holds."""
    holds = {column: readable(group) for group, column in node.groups.items()}
    holds[node.count] = "COUNT(*)"
    for measure, column in node.measures.items():
        holds[column] = measure_name(measure)
        holds[rest_column(column)] = f"what rounding took from {measure_name(measure)}"
    holds |= {extreme.column: called(extreme) for extreme in node.extremes}
    return tuple(Column(name, type, holds[name], name.startswith(HIDDEN)) for name, type in stored)


def called(extreme: Extreme) -> str:
    """MIN(date), COUNT(DISTINCT category)."""
    value = readable(extreme.value)
    if extreme.function == "spread":
        return f"SUM(({value} - AVG({value})) squared)"
    return f"COUNT(DISTINCT {value})" if extreme.function == "distinct" else f"{extreme.function.upper()}({value})"


# --- who serves whom ---


def is_root(lattice: Lattice, name: str) -> bool:
    """Whether a table was made so that changes of dimensions need no fact."""
    table = lattice.tables.get(name)
    part = table.definition.properties[SUMMARY].get("part") if table is not None else None
    return part is not None and bool(part["root_of"])


def why_kept(lattice: Lattice, name: str) -> str:
    """What a table that is no view is kept for."""
    served = [
        f"{called(extreme)} of {node.name}"
        for node in lattice.nodes.values()
        for extreme in node.extremes
        if extreme.node == name
    ]
    if is_root(lattice, name):
        served.append(f"root of {lattice.tables[name].defined.view.name}")
    return ", ".join(served)


def _serves(node: Node, other: Node) -> str:
    extremes = [called(extreme) for extreme in node.extremes if extreme.node == other.name]
    if extremes:
        return ", ".join(extremes)
    dimensions = " and ".join(sorted({dimension.short for dimension in node.dimensions}))
    return f"root: with it, changes of {dimensions} need no facts"


def when_extreme_goes(extreme: Extreme) -> str:
    """What becomes of MIN, MAX or COUNT(DISTINCT e) when a value is deleted."""
    name = called(extreme)
    if extreme.function == "distinct":
        return f"{name}: values that come and go in {extreme.node} are counted; nothing is recomputed"
    if extreme.function == "spread":
        return f"{name}: computed from the values in {extreme.node}, for groups that change; no fact is read"
    if extreme.recomputed:
        return (
            f"{name}: if it is deleted, and nothing that is inserted makes up for it, it is recomputed from the stored "
            "facts, for all such groups in one job"
        )
    return f"{name}: if it is deleted, the next one is looked up in {extreme.node}; no fact is read"


# --- why ---


def _why(choices: Sequence[Choice]) -> str:
    chosen = next(choice for choice in choices if choice.chosen)
    if len(choices) == 1:
        return "nothing else serves"
    if chosen.cost > min(choice.cost for choice in choices):
        return "what costs less would need attributes that cannot be carried down to it"
    others = [choice for choice in choices if choice is not chosen and choice.cost == chosen.cost]
    return "it costs as little as any other" if others else "it costs the least"
