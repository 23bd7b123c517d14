"""A view at any of its states, as a DataFrame.

    V at s  =  base ⊎ positive(net)  −  negative(net)         net = Σ deltas in (base, s], equal rows added up

Base rows are distinct, so each meets at most one row of the small negative part, which is broadcast: one pass over the
base, and no exchange of it. They meet by the hash that is stored beside each base row, so that a query reads that and
the columns that it asks for; without hashes they meet by all columns. The positive part is simply added: reading as a
bag, it does not matter whether two copies of a row come from one place.
"""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Union

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NullType

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import HASH, NET, SIDE, STATE, WEIGHT
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.loads import repeated
from viewkeeper.lake.tables.row_hash import row_hash
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.lake.tables.spark_files import read_files

if TYPE_CHECKING:
    from viewkeeper.warehouse.computed_views import ComputedView

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


class ShownView:
    """What readers see of a stored view: rows that are the same to them become one."""

    def __init__(self, stored: AppendedView | RewrittenView, view: Definition) -> None:
        self._stored, self._view = stored, view

    def signed(self) -> DataFrame:
        return shown_rows(self._stored.signed(), self._view, WEIGHT)

    def bag(self) -> DataFrame:
        return shown_rows(self._stored.bag(), self._view)

    def weights(self) -> DataFrame:
        # Of rows that are there: of one that was deleted, an expression might fail.
        return added_up(shown_rows(self._stored.weights(), self._view, WEIGHT))


class FamilyView:
    """Several views read as one: their rows side by side, each padded to the columns of the family."""

    def __init__(self, members: "Sequence[tuple[MemberView, Definition]]") -> None:
        self._members = [member for member, _ in members]
        self._views = [view for _, view in members]

    def signed(self) -> DataFrame:
        return padded_rows([member.signed() for member in self._members], self._views, WEIGHT)

    def bag(self) -> DataFrame:
        return padded_rows([member.bag() for member in self._members], self._views)

    def weights(self) -> DataFrame:
        # A NULL that is a group and one that pads are the same, so two members may have the same row.
        return added_up(padded_rows([member.weights() for member in self._members], self._views, WEIGHT))


MemberView = Union[AppendedView, RewrittenView, ShownView, "ComputedView"]
StoredView = MemberView | FamilyView


def shown_rows(frame: DataFrame, view: Definition, *kept: str) -> DataFrame:
    """Stored rows as readers see them, one by one, with columns that are kept beside them."""
    rows = frame if view.having is None else frame.filter(F.expr(view.having))
    if view.expressions is None:
        columns = [F.col(quoted(name)) for name in view.shown.names]
    else:
        columns = [F.expr(sql).cast(type).alias(name) for name, sql, type in view.expressions]
    return rows.select(*columns, *kept)


def padded_rows(frames: Sequence[DataFrame], views: Sequence[Definition], *kept: str) -> DataFrame:
    """Shown rows of the members of a family as rows of the family, with columns that are kept beside them.

    The first member decides on names and types; where it has nothing but NULL, the first that has something else.
    """
    padded = [
        frame.select(*(F.expr(sql).alias(name) for name, sql in view.padded), *kept)
        for frame, view in zip(frames, views, strict=True)
    ]
    names = [*(name for name, _ in views[0].padded), *kept]
    types = [
        next((type for type in candidates if not isinstance(type, NullType)), candidates[0])
        for candidates in zip(*([field.dataType for field in frame.schema] for frame in padded), strict=True)
    ]
    columns = [F.col(quoted(name)).cast(type).alias(name) for name, type in zip(names, types, strict=True)]
    return reduce(lambda some, more: some.unionAll(more), (frame.toDF(*names).select(*columns) for frame in padded))


def added_up(frame: DataFrame, *within: str) -> DataFrame:
    """Equal rows as one, with the sum of their weights, and none whose weights cancel; within a state, if so asked."""
    by = [F.col(quoted(name)) for name in frame.columns if name != WEIGHT and name not in within]
    net = frame.groupBy(*by, *within).agg(F.sum(WEIGHT).alias(WEIGHT)).filter(F.col(WEIGHT) != 0)
    return net.select(*by, WEIGHT, *within)
