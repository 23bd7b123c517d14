"""A view at any of its states, as a DataFrame.

    V at s  =  base ⊎ positive(net)  −  negative(net)         net = Σ deltas in (base, s], equal rows added up

Base rows are distinct, so each meets at most one row of the small negative part, which is broadcast: one pass over the
base, and no exchange of it. They meet by the hash that is stored beside each base row, so that a query reads that and
the columns that it asks for; without hashes they meet by all columns. The positive part is simply added: reading as a
bag, it does not matter whether two copies of a row come from one place.
"""

from collections.abc import Sequence
from functools import reduce

from viewkeeper.algebra.pyspark_names import Column, DataFrame, F, SparkSession
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import HASH, NET, SIDE, STATE, WEIGHT
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.loads import repeated
from viewkeeper.lake.tables.row_hash import row_hash
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.lake.tables.spark_files import read_files

BROADCAST_ROWS = 1_000_000
"""Beyond this many pending rows, what they change is found by an exchange of the base instead of a broadcast."""


class AppendedView:
    """A view of the layout `appended`, over the files of one version."""

    def __init__(
        self,
        spark: SparkSession,
        store: LocalStore,
        view: Definition,
        files: Sequence[DataFile],
        state: int,
        *,
        hashed: bool,
    ) -> None:
        self._view = view
        self._columns = [F.col(quoted(name)) for name in view.names]
        deltas = [file for file in files if file.is_delta and (file.states is None or file.states[0] <= state)]
        bases = [file for file in files if not file.is_delta]
        self._hashed = hashed
        self._base = read_files(spark, store, view.folder, bases, view.columns, signed=True, hashed=hashed)
        pending = read_files(spark, store, view.folder, deltas, view.columns, signed=True)
        self._pending = pending.filter(F.col(STATE) <= state)
        self._only_single = all(file.weights == (1, 1) for file in bases)
        self._only_insertions = all(file.weights is not None and file.weights[0] > 0 for file in deltas)
        self._has_pending = bool(deltas)
        self._broadcast = sum(file.rows for file in deltas) <= BROADCAST_ROWS

    def signed(self) -> DataFrame:
        """Rows with weights that add up to the view, not added up: enough for what is linear in them."""
        return self._weighted(self._base).unionAll(self._weighted(self._pending))

    def bag(self) -> DataFrame:
        """Every row, as often as it is there."""
        base = self._base.select(*self._columns) if self._only_single else repeated(self._base, self._view)
        if not self._has_pending:
            return base
        if self._only_insertions:
            return base.unionAll(repeated(self._pending, self._view))
        net = self._net()
        if not self._broadcast:
            return repeated(self._summed(self.signed()), self._view)
        beside = self._beside(net.filter(F.col(WEIGHT) < 0), "left")
        kept = beside.withColumn(WEIGHT, F.col(WEIGHT) + F.coalesce(F.col(NET), F.lit(0))).filter(F.col(WEIGHT) > 0)
        kept = kept.select(*self._columns) if self._only_single else repeated(kept, self._view)
        return kept.unionAll(repeated(net.filter(F.col(WEIGHT) > 0), self._view))

    def weights(self) -> DataFrame:
        """Every distinct row once, with its count."""
        if not self._has_pending:
            return self._weighted(self._base)
        if not self._broadcast:
            return self._summed(self.signed())
        # Only base rows that the net change touches have to be added up with it. A hash may bring one too many here.
        net = self._net()
        untouched = self._weighted(self._beside(net, "left_anti"))
        touched = self._weighted(self._beside(net, "left_semi"))
        return untouched.unionAll(self._summed(touched.unionAll(net)))

    def _weighted(self, frame: DataFrame) -> DataFrame:
        return frame.select(*self._columns, WEIGHT)

    def _summed(self, frame: DataFrame) -> DataFrame:
        total = frame.groupBy(*self._columns).agg(F.sum(WEIGHT).alias(WEIGHT))
        return total.filter(F.col(WEIGHT) != 0)

    def _net(self) -> DataFrame:
        return self._summed(self._pending)

    def _beside(self, net: DataFrame, how: str) -> DataFrame:
        """The base joined with a net change row by row."""
        if self._hashed:
            beside = net.select(row_hash(self._view).alias(SIDE), F.col(WEIGHT).alias(NET))
            return self._base.join(F.broadcast(beside), F.col(HASH) == F.col(SIDE), how)
        names = self._view.names
        renamed = [F.col(quoted(name)).alias(SIDE + name) for name in names]
        same = [F.col(quoted(name)).eqNullSafe(F.col(quoted(SIDE + name))) for name in names]
        beside = net.select(*renamed, F.col(WEIGHT).alias(NET))
        return self._base.join(F.broadcast(beside), reduce(Column.__and__, same), how)


class RewrittenView:
    """A view of the layout `rewritten`: the rows of a version, less the changes after the state that is asked for."""

    def __init__(
        self,
        spark: SparkSession,
        store: LocalStore,
        view: Definition,
        files: Sequence[DataFile],
        later: Sequence[DataFile],
        state: int,
    ) -> None:
        self._view = view
        self._columns = [F.col(quoted(name)) for name in view.names]
        self._rows = read_files(spark, store, view.folder, files, view.columns, signed=False)
        changes = read_files(spark, store, HOME, later, view.columns, signed=True).filter(F.col(STATE) > state)
        self._undone = changes.select(*self._columns, (-F.col(WEIGHT)).alias(WEIGHT)) if later else None

    def signed(self) -> DataFrame:
        rows = self._rows.select(*self._columns, F.lit(1).cast("bigint").alias(WEIGHT))
        return rows if self._undone is None else rows.unionAll(self._undone)

    def bag(self) -> DataFrame:
        return self._rows if self._undone is None else repeated(self.weights(), self._view)

    def weights(self) -> DataFrame:
        total = self.signed().groupBy(*self._columns).agg(F.sum(WEIGHT).alias(WEIGHT))
        return total.filter(F.col(WEIGHT) != 0)


def added_up(frame: DataFrame, *within: str) -> DataFrame:
    """Equal rows as one, with the sum of their weights, and none whose weights cancel; within a state, if so asked."""
    by = [F.col(quoted(name)) for name in frame.columns if name != WEIGHT and name not in within]
    net = frame.groupBy(*by, *within).agg(F.sum(WEIGHT).alias(WEIGHT)).filter(F.col(WEIGHT) != 0)
    return net.select(*by, WEIGHT, *within)
