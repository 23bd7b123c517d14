"""Propagate: from the changes of fact and dimensions to the summary-deltas of a lattice, in one Spark job.

    changes, D_old, D_new, ΔD, nodes as they are stored    ⟶    sd_v for every node v

Nothing that is stored is touched, so readers read on. Each summary-delta comes back as an Arrow table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.pyspark_names import DataFrame, SparkSession
from viewkeeper.clock import unique_id
from viewkeeper.summary.derivation import ALSO, BrokenForeignKey
from viewkeeper.summary.plan import CHANGES, Plan
from viewkeeper.summary.statements import LOST, Names, lattice_statement, quoted, rows_without, tagged_column


@dataclass(frozen=True)
class Inputs:
    """What a propagation reads. Dimensions are by path."""

    changes: DataFrame
    """rows of the fact with `_vk_weight`"""
    now: Callable[[str], DataFrame]
    """a node as it is stored, with the columns of its summary-delta; or the fact behind the changes"""
    old: Mapping[str, DataFrame] = field(default_factory=dict)
    new: Mapping[str, DataFrame] = field(default_factory=dict)
    changed: Mapping[str, DataFrame] = field(default_factory=dict)
    """the change of each dimension that changed, with `_vk_weight`"""


def propagate(spark: SparkSession, plan: Plan, inputs: Inputs) -> dict[str, pa.Table]:
    """The summary-deltas of all nodes of a plan; BrokenForeignKey if it relies on one that does not hold."""
    checked = [(edge, place) for edge in plan.edges for place, d in enumerate(edge.joins) if d.path in plan.relied]
    with TemporaryNames(spark) as temporary:
        names = _named(plan, inputs, temporary)
        lost = [(rows_without(edge, place, names), (LOST,)) for edge, place in checked]
        answer = spark.sql(lattice_statement(plan.edges, names, lost)).toArrow()
    tables = apart(answer, [*(edge.below.columns for edge in plan.edges), *((LOST,) for _ in checked)])
    made, counts = tables[: len(plan.edges)], tables[len(plan.edges) :]
    for (edge, place), count in zip(checked, counts, strict=True):
        if rows := count[LOST][0].as_py():
            raise BrokenForeignKey(edge.joins[place].path, rows)
    # What was added to a summary-delta for those below it has done its work.
    return {
        edge.below.name: table.select([name for name in table.column_names if not name.startswith(ALSO)])
        for edge, table in zip(plan.edges, made, strict=True)
    }


def _named(plan: Plan, inputs: Inputs, temporary: "TemporaryNames") -> Names:
    """The names of everything that the statement reads."""
    deltas = {edge.below.name: quoted(f"sd_{edge.below.name}") for edge in plan.edges}
    deltas[CHANGES] = temporary.name(inputs.changes)
    used = dict.fromkeys(dimension.path for edge in plan.edges for dimension in edge.joins)
    changed = {path: temporary.name(frame) for path, frame in inputs.changed.items() if path in used}
    old = {path: temporary.name(inputs.old[path]) for path in used}
    new = {path: temporary.name(inputs.new[path]) for path in used if path in changed}
    moved = [edge.above for edge in plan.edges if any(dimension.path in changed for dimension in edge.joins)]
    stored = {node.name: temporary.name(inputs.now(node.name)) for node in dict.fromkeys(moved)}
    now = {name: table if name == CHANGES else quoted(f"now_{name}") for name, table in stored.items()}
    return Names(deltas, now, stored, old, new, changed, plan.preaggregated)


class TemporaryNames:
    """Frames under names that a statement can use, until the end of the block. What is made of them then lives on."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._names: list[str] = []

    def __enter__(self) -> "TemporaryNames":
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            self._spark.catalog.dropTempView(name)

    def name(self, frame: DataFrame) -> str:
        """A name for a frame, quoted."""
        name = f"_vk_{unique_id()}"
        frame.createTempView(name)
        self._names.append(name)
        return quoted(name)


def apart(answer: pa.Table, tables: Sequence[Sequence[str]]) -> list[pa.Table]:
    """The rows of each table of a tagged answer, by the columns of each."""
    made = []
    for place, columns in enumerate(tables):
        rows = answer.filter(pc.equal(answer["node"], place))
        rows = rows.select([tagged_column(place, number) for number in range(len(columns))])
        made.append(rows.rename_columns(list(columns)))
    return made
