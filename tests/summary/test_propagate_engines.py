"""Propagation on the driver and in Spark: the same summary-deltas, and they are what the tables change by.

    v_new  =  v_old + sd_v          each v computed whole, over the rows before and after

Plans are random: each node is derived from any node that it can be derived from, with and without a stored core, with
attributes that hierarchies allow, while summary-deltas of earlier changes wait. Where no dimension changes, functions
are carried too, and plans rely on foreign keys that may not hold.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from summary_definitions import Definitions
from summary_engines import uncompiled
from summary_oracle import arrow_rows
from summary_schemas import FACT, Bag, Model, Schema, random_schema

from viewkeeper.clock import seeded
from viewkeeper.lake.log.columns import WEIGHT, arrow_type
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.summary.defined import defined
from viewkeeper.summary.derivation import BrokenForeignKey
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.hierarchies import Hierarchy
from viewkeeper.summary.node import Node
from viewkeeper.summary.plan import CHANGES, Lineage, Plan, changes_of
from viewkeeper.summary.propagate_arrow import ArrowInputs, propagate_arrow
from viewkeeper.summary.star import Dimension

ON_DRIVER = range(16)
IN_SPARK, MORE_IN_SPARK = range(100, 103), range(103, 120)


class PureLattice:
    """The nodes of random summaries over a random star, and its rows; nothing is stored."""

    def __init__(self, seed: int, *, in_spark: bool = False) -> None:
        self.rng = rng = seeded(seed)
        self.broken = 0
        self.schema = random_schema(rng, odd=rng.random() < 0.3)
        self.model = Model(self.schema, rng, rng.choice([0, 15, 30]))
        self.core_readable = rng.random() < 0.5
        self.nodes = self._nodes(in_spark)
        self.dimensions = {d.path: d for node in self.nodes.values() for d in node.dimensions}
        fact = changes_of(self.relations[FACT], WEIGHT)
        nodes = list(self.nodes.values())
        self.loading = Lineage(nodes, fact, core_readable=True)
        self.lineage = Lineage(nodes, fact, core_readable=self.core_readable, determined=self._determined)
        self.facts_only = Lineage(
            nodes,
            fact,
            core_readable=self.core_readable,
            determined=self._determined,
            facts_only=True,
            relied=frozenset(self.dimensions),
        )

    def _nodes(self, in_spark: bool) -> dict[str, Node]:
        self.relations = {
            table.name: Relation(table.name, "s", tuple(table.columns), table.types, table.key or None)
            for table in self.schema.tables.values()
        }
        made = Definitions(self.schema, self.rng, in_spark=in_spark)
        nodes: list[Node] = []
        for number in range(self.rng.randint(2, 5)):
            parsed = parse_definition(made.make(f"v{number}", {}).statement(), self.relations)
            views = [member.view for member in parsed.members] if isinstance(parsed, Family) else [parsed]
            for view in views:
                assert isinstance(view, SummaryView)
                whole = with_hidden(defined(view), nodes, core_readable=self.core_readable, recompute=False)
                nodes += [*(node for node, _ in whole.hidden), whole.node]
        return {node.name: node for node in nodes}

    def _determined(self, dimension: Dimension, columns: frozenset[str]) -> frozenset[str]:
        levels = self.schema.tables[dimension.relation.name].hierarchy
        return Hierarchy.chain("d", list(levels)).closure(columns) if levels and columns else frozenset()

    def plan(self, given: ArrowInputs, *, relying: bool = True) -> Plan:
        """Any node above another may be the one with the smallest summary-delta."""
        lineage = self.lineage if given.changed else self.facts_only
        return lineage.plan(lambda name: self.rng.choice([1.0, 2.0, 50.0]), relying=relying)

    def propagated(self, given: ArrowInputs) -> dict[str, pa.Table]:
        plan = self.plan(given)
        try:
            return propagate_arrow(plan.edges, given, group_type, relied=plan.relied)
        except BrokenForeignKey:
            self.broken += 1
            return propagate_arrow(self.plan(given, relying=False).edges, given, group_type)

    def table(self, rows: Mapping[str, Bag], relation: str) -> pa.Table:
        return arrow_rows(self.schema.tables[relation], rows[relation])

    def whole(self, rows: Mapping[str, Bag]) -> dict[str, pa.Table]:
        """The linear part of every table, computed from all facts."""
        joined = {path: self.table(rows, d.relation.name) for path, d in self.dimensions.items()}
        inputs = ArrowInputs(weighted(self.schema, FACT, rows[FACT]), lambda _: pa.table({}), joined)
        edges = self.loading.plan(lambda name: 1.0 if name == CHANGES else 1e9).edges
        return propagate_arrow(edges, inputs, group_type)

    def inputs(
        self, before: Mapping[str, Bag], changes: Mapping[str, Bag], stored: Mapping[str, list[pa.Table]]
    ) -> ArrowInputs:
        """What a propagation of changes reads, with the tables as they are stored and what waits for them."""
        after = {name: added(bag, changes.get(name, Counter())) for name, bag in before.items()}
        moved = {path: d for path, d in self.dimensions.items() if any(changes.get(d.relation.name, {}).values())}

        def now(name: str) -> pa.Table:
            if name != CHANGES:
                return pa.concat_tables(stored[name])
            assert self.core_readable, "there is no core to be read"
            return weighted(self.schema, FACT, after[FACT])

        return ArrowInputs(
            weighted(self.schema, FACT, changes.get(FACT, Counter())),
            now,
            {path: self.table(before, d.relation.name) for path, d in self.dimensions.items()},
            {path: self.table(after, d.relation.name) for path, d in self.dimensions.items()},
            {path: weighted(self.schema, d.relation.name, changes[d.relation.name]) for path, d in moved.items()},
        )


def weighted(schema: Schema, name: str, bag: Bag) -> pa.Table:
    """Signed rows."""
    signed = [(row, weight) for row, weight in bag.items() if weight]
    rows = arrow_rows(schema.tables[name], Counter({row: 1 for row, _ in signed}))
    return rows.append_column(WEIGHT, pa.array([weight for _, weight in signed], pa.int64()))


def added(bag: Bag, change: Bag) -> Bag:
    total = Counter(bag)
    for row, weight in change.items():
        total[row] += weight
    return +total


def group_type(expression: Expression, node: str, column: str) -> pa.DataType:
    return arrow_type(expression.type)


def rows_of(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Rows with one NaN."""
    for row in table.select(columns).to_pylist():
        yield tuple("NaN" if value != value else value for value in row.values())


def bag_of(table: pa.Table, node: Node) -> Counter[tuple[Any, ...]]:
    return Counter(rows_of(table, node.columns))


def sums(tables: list[pa.Table], node: Node) -> dict[tuple[Any, ...], list[Any]]:
    """The groups that are there, with what their rows add up to."""
    total: dict[tuple[Any, ...], list[Any]] = {}
    for row in (row for table in tables for row in rows_of(table, node.columns)):
        keys, changes = row[: len(node.keys)], row[len(node.keys) :]
        group = total.setdefault(keys, [0] * len(changes))
        for place, change in enumerate(changes):
            group[place] += change or 0
    return {key: group for key, group in total.items() if any(group)}


@pytest.mark.parametrize("seed", ON_DRIVER)
def test_summary_deltas_are_what_the_tables_change_by(seed):
    lattice = PureLattice(seed)
    before = lattice.model.copy()
    stored = {name: [table] for name, table in lattice.whole(before).items()}
    for _ in range(4):
        changes = lattice.model.change()
        deltas = lattice.propagated(lattice.inputs(before, changes, stored))
        # They wait: nothing is refreshed in between.
        stored = {name: [*tables, deltas[name]] for name, tables in stored.items()}
        before = lattice.model.copy()
        whole = lattice.whole(before)
        for name, node in lattice.nodes.items():
            assert sums(stored[name], node) == sums([whole[name]], node), (seed, name)


@pytest.fixture
def small_plans(spark):
    with uncompiled(spark):
        yield spark


@pytest.mark.parametrize("seed", [*IN_SPARK, *(pytest.param(seed, marks=pytest.mark.soak) for seed in MORE_IN_SPARK)])
def test_both_engines_make_the_same_summary_deltas(small_plans, seed):
    from viewkeeper.maintenance.contents import frame_of_table
    from viewkeeper.summary.propagate import Inputs, propagate

    def frames(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        return {path: frame_of_table(small_plans, table) for path, table in tables.items()}

    lattice = PureLattice(seed)
    before = lattice.model.copy()
    stored = {name: [table] for name, table in lattice.whole(before).items()}
    # The first changes wait, the second are compared.
    first = lattice.model.change()
    waiting = lattice.propagated(lattice.inputs(before, first, stored))
    stored = {name: [*tables, waiting[name]] for name, tables in stored.items()}
    before = lattice.model.copy()
    given = lattice.inputs(before, lattice.model.change(), stored)
    plan = lattice.plan(given)
    inputs = Inputs(
        frame_of_table(small_plans, given.changes),
        lambda name: frame_of_table(small_plans, given.now(name)),
        frames(given.old),
        frames(given.new),
        frames(given.changed),
    )
    broken = False
    try:
        on_driver = propagate_arrow(plan.edges, given, group_type, relied=plan.relied)
    except BrokenForeignKey:
        broken = True
    if broken:
        with pytest.raises(BrokenForeignKey):
            propagate(small_plans, plan, inputs)
        plan = lattice.plan(given, relying=False)
        on_driver = propagate_arrow(plan.edges, given, group_type)
    in_spark = propagate(small_plans, plan, inputs)
    assert on_driver.keys() == in_spark.keys()
    for name, node in lattice.nodes.items():
        assert bag_of(on_driver[name], node) == bag_of(in_spark[name], node), (seed, name)
