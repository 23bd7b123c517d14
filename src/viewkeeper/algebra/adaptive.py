"""The Z-set engine that goes by size: small Z-sets in memory, large ones on Spark.

    memory ∘ memory  =  memory      if the expressions compile there and no more than `most_rows` come of it
    spark ∘ any      =  spark
    looking inside   :  spark → memory, if no more than `most_rows` are found

A Z-set that is looked at is computed once: if it is small its rows are kept in memory, if it is large Spark keeps them.
Spark is started when the first Z-set needs it, and not before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import WEIGHT, On, Row
from viewkeeper.errors import ExpressionError
from viewkeeper.sql.expressions import Expression

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from viewkeeper.algebra.arrow import ArrowZSet
    from viewkeeper.algebra.spark import SparkZSet

MOST_ROWS = 100_000


class Engines:
    """Makes Z-sets that go by size. `spark` gives the session, and is not called before one is needed."""

    def __init__(self, spark: "Callable[[], SparkSession]", most_rows: int = MOST_ROWS) -> None:
        self._spark = spark
        self.most_rows = most_rows

    def zset(self, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]] = ()) -> "AdaptiveZSet":
        """From rows on the driver."""
        return AdaptiveZSet(self, MemoryZSet(columns, weights))

    def of_frame(self, frame: "DataFrame") -> "AdaptiveZSet":
        """The rows of a DataFrame: each as often as its `_vk_weight` says, or once if it has no such column."""
        from viewkeeper.algebra.spark import SparkZSet

        return AdaptiveZSet(self, SparkZSet(frame) if WEIGHT in frame.columns else SparkZSet.of_frame(frame))

    def of_file(self, path: "Path", pattern: str) -> "AdaptiveZSet":
        """The rows of a Parquet file with `_vk_weight`, which Spark finds under a pattern."""
        from viewkeeper.algebra.spark import SparkZSet

        return AdaptiveZSet(self, SparkZSet(self._spark().read.parquet(pattern)), file=path)

    def on_spark(self, rows: MemoryZSet) -> "SparkZSet":
        """The same Z-set on Spark."""
        from viewkeeper.algebra.spark import SparkZSet

        return SparkZSet.of_rows(self._spark(), rows.columns, rows.weights())


class AdaptiveZSet:
    """A Z-set that is in memory or on Spark; see `zset.ZSet` for what the operations mean."""

    __slots__ = ("_engines", "_file", "_held", "_known_large", "_on_spark", "columns")

    def __init__(self, engines: Engines, held: "MemoryZSet | SparkZSet", file: "Path | None" = None) -> None:
        if isinstance(held, MemoryZSet) and held.size() > engines.most_rows:
            held = engines.on_spark(held)
        self._engines = engines
        self._held = held
        self._on_spark: SparkZSet | None = None
        self._known_large = False
        self._file = file
        """where the rows lie, if Spark reads them from a file"""
        self.columns = held.columns

    def like(self, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]]) -> "AdaptiveZSet":
        return self._engines.zset(columns, weights)

    @property
    def frame(self) -> "DataFrame":
        """The rows as a DataFrame with a column `_vk_weight`, in which a row may be there several times."""
        return self._spark().frame

    @property
    def in_memory(self) -> bool:
        """Where it is held now; only for those who watch over the engines."""
        return isinstance(self._held, MemoryZSet)

    def to_arrow(self, types: Sequence[str]) -> "ArrowZSet":
        """The same Z-set in Arrow; with the names of SQL types, which rows in memory do not tell."""
        from viewkeeper.algebra.arrow import ArrowZSet

        if isinstance(self._held, MemoryZSet):
            return ArrowZSet.of_rows(self.columns, self._held.weights(), types)
        if self._file is None:
            return ArrowZSet.of_table(self._held.frame.toArrow())
        import pyarrow.parquet as pq

        return ArrowZSet.of_table(pq.read_table(self._file))

    def most_rows(self) -> int:
        """There are no more rows than these; it takes no job to know, or one that reads no columns."""
        if isinstance(self._held, MemoryZSet):
            return self._held.size()
        return int(self._held.frame.count())

    def _spark(self) -> "SparkZSet":
        if not isinstance(self._held, MemoryZSet):
            return self._held
        if self._on_spark is None:
            self._on_spark = self._engines.on_spark(self._held)
        return self._on_spark

    def _made(self, held: "MemoryZSet | SparkZSet") -> "AdaptiveZSet":
        return AdaptiveZSet(self._engines, held)

    def _nothing(self) -> bool:
        """Whether it is empty and that is known without a job."""
        return isinstance(self._held, MemoryZSet) and self._held.is_empty()

    # --- a group under + ---

    def __add__(self, other: "AdaptiveZSet") -> "AdaptiveZSet":
        mine, theirs = self._held, other._held
        if isinstance(mine, MemoryZSet) and isinstance(theirs, MemoryZSet):
            return self._made(mine + theirs)
        if self.columns == other.columns and (self._nothing() or other._nothing()):
            return other if self._nothing() else self
        return self._made(self._spark() + other._spark())

    def __sub__(self, other: "AdaptiveZSet") -> "AdaptiveZSet":
        return self + (-other)

    def __neg__(self) -> "AdaptiveZSet":
        return self._made(-self._held)

    # --- relational operations, linear in the weights ---

    def join(
        self, other: "AdaptiveZSet", on: On, where: tuple[Expression, ...], keep: tuple[str, ...]
    ) -> "AdaptiveZSet":
        mine, theirs = self._held, other._held
        if self._nothing() or other._nothing():
            return self._engines.zset(keep)
        if (
            isinstance(mine, MemoryZSet)
            and isinstance(theirs, MemoryZSet)
            and _compile(where, self.columns + other.columns)
            # Counted beforehand: a join that explodes must not fill the memory to find out.
            and (
                mine.size() * theirs.size() <= self._engines.most_rows
                or mine.pairs(theirs, on) <= self._engines.most_rows
            )
        ):
            return self._made(mine.join(theirs, on, where, keep))
        return self._made(self._spark().join(other._spark(), on, where, keep))

    def select(self, conditions: tuple[Expression, ...]) -> "AdaptiveZSet":
        if self._nothing():
            return self
        return self._made(self._able_to(conditions).select(conditions))

    def project(self, output: tuple[tuple[str, Expression], ...]) -> "AdaptiveZSet":
        if self._nothing():
            return self._engines.zset(tuple(name for name, _ in output))
        return self._made(self._able_to(tuple(expression for _, expression in output)).project(output))

    def _able_to(self, expressions: tuple[Expression, ...]) -> "MemoryZSet | SparkZSet":
        """The engine that evaluates these expressions."""
        return self._held if _compile(expressions, self.columns) else self._spark()

    def keep(self, columns: tuple[str, ...]) -> "AdaptiveZSet":
        return self._made(self._held.keep(columns))

    def rename(self, columns: tuple[str, ...]) -> "AdaptiveZSet":
        return self._made(self._held.rename(columns))

    # --- not linear: set semantics, for the keyed algorithms ---

    def distinct(self) -> "AdaptiveZSet":
        return self._made(self._held.distinct())

    def matching(self, keys: "AdaptiveZSet", on: On) -> "AdaptiveZSet":
        mine, theirs = self._held, keys._held
        if isinstance(mine, MemoryZSet) and isinstance(theirs, MemoryZSet):
            return self._made(mine.matching(theirs, on))
        if self._nothing() or keys._nothing():
            return self._engines.zset(self.columns)
        return self._made(self._spark().matching(keys._spark(), on))

    def key_delete(self, keys: "AdaptiveZSet", on: On) -> "AdaptiveZSet":
        mine, theirs = self._held, keys._held
        if isinstance(mine, MemoryZSet) and isinstance(theirs, MemoryZSet):
            return self._made(mine.key_delete(theirs, on))
        if self._nothing() or keys._nothing():
            return self
        return self._made(self._spark().key_delete(keys._spark(), on))

    # --- looking inside ---

    def is_empty(self) -> bool:
        held = self._looked_at()
        return isinstance(held, MemoryZSet) and held.is_empty()

    def weights(self) -> Iterator[tuple[Row, int]]:
        return self._looked_at().weights()

    def size(self) -> int:
        return self._looked_at().size()

    def _looked_at(self) -> "MemoryZSet | SparkZSet":
        """What is held, in memory if it is small enough for that."""
        if not isinstance(self._held, MemoryZSet) and not self._known_large:
            rows = self._held.weights_up_to(self._engines.most_rows)
            if rows is None:
                self._held = self._held.computed_once()
                self._known_large = True
            else:
                self._held = MemoryZSet(self.columns, rows)
        return self._held

    def __repr__(self) -> str:
        return repr(self._held)


@lru_cache(maxsize=4096)
def _compile(expressions: tuple[Expression, ...], columns: tuple[str, ...]) -> bool:
    """Whether the in-memory engine evaluates all of these."""
    try:
        for expression in expressions:
            expression.compile(columns)
    except ExpressionError:
        return False
    return True
