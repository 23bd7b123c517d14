"""Whole tables of a lattice: computed when a view is created, reloaded, or cheaper to recompute than to refresh.

    v  =  γ ( p ⋈ D )        each from the one above it, as its summary-delta is

This is also rematerialization with the lattice, one of the baselines of section 6; without it every table is computed
from the fact.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType

from viewkeeper.algebra.pyspark_names import DataFrame, SparkSession
from viewkeeper.summary.derivation import Derivation
from viewkeeper.summary.node import Node
from viewkeeper.summary.propagate import TemporaryNames
from viewkeeper.summary.statements import whole_table, with_extremes


class WholeTables:
    """The content of nodes as frames. Those that others are computed from are kept by Spark to the end of the block.

    `above` has what the edges start from: the fact (with `_vk_weight`), and nodes that are stored; so has `nodes`, and
    those that are made.
    """

    def __init__(
        self,
        spark: SparkSession,
        edges: Sequence[Derivation],
        above: Mapping[str, DataFrame],
        dimensions: Mapping[str, DataFrame],
        nodes: Mapping[str, Node],
    ) -> None:
        self._kept: list[DataFrame] = []
        self.frames: dict[str, DataFrame] = {}
        made = [edge.below for edge in edges]
        read = {edge.above.name for edge in edges} | {extreme.node for node in made for extreme in node.extremes}
        with TemporaryNames(spark) as temporary:
            joined = {path: temporary.name(frame) for path, frame in dimensions.items()}
            tables = {name: temporary.name(frame) for name, frame in above.items()}
            for edge in edges:
                name = edge.below.name
                frame = spark.sql(whole_table(edge, tables[edge.above.name], joined))
                if name in read:
                    self._kept.append(frame := frame.persist())
                tables[name] = temporary.name(frame)
                self.frames[name] = frame
            for node in made:
                if node.extremes:
                    self.frames[node.name] = spark.sql(with_extremes(node, tables[node.name], tables, nodes))

    def __enter__(self) -> "WholeTables":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._kept:
            frame.unpersist()
