"""The Z-set engine that goes by size: small Z-sets as rows of Python, larger ones as columns of Arrow, the largest on
Spark.

    memory ∘ memory  =  memory      if the expressions compile there and no more than `few_rows` come of it
    arrow ∘ memory   =  arrow       likewise, up to `most_bytes`
    spark ∘ any      =  spark
    looking inside   :  spark → memory, if no more than `most_rows` are found

A Z-set that is looked at is computed once: if it is small its rows are kept in memory, if it is large Spark keeps them.
Rows become columns once, and stay columns: between the two, each value is handled by itself.
Spark is started when the first Z-set needs it, and not before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import WEIGHT, On, Row
from viewkeeper.errors import ExpressionError
from viewkeeper.sql.expressions import Expression

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from viewkeeper.algebra.arrow import ArrowZSet
    from viewkeeper.algebra.spark import SparkZSet

    Held: TypeAlias = MemoryZSet | ArrowZSet | SparkZSet

MOST_ROWS = 100_000
"""Rows that come back from Spark as rows of Python."""
FEW_ROWS = 10_000
"""Rows that are held as rows of Python where larger Z-sets are held in Arrow."""
MOST_BYTES = 512 << 20
"""What a Z-set takes in Arrow; a larger one goes to Spark."""
BYTES_PER_PAIR = 64
"""What a pair of rows is taken to need in a join in Arrow, which makes all of them at once."""


class Engines:
    """Makes Z-sets that go by size. `spark` gives the session, and is not called before one is needed."""

    def __init__(self, spark: "Callable[[], SparkSession]", most_rows: int = MOST_ROWS, most_bytes: int = 0) -> None:
        """`most_bytes` are those of a Z-set in Arrow; 0: there is none."""
        self._spark = spark
        self.most_rows = most_rows
        self.most_bytes = most_bytes

    @property
    def few_rows(self) -> int:
        """Rows that are held as rows of Python."""
        return min(self.most_rows, FEW_ROWS) if self.most_bytes else self.most_rows

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

    def on_spark(self, rows: "MemoryZSet | ArrowZSet") -> "SparkZSet":
        """The same Z-set on Spark."""
        from viewkeeper.algebra.spark import SparkZSet

        if isinstance(rows, MemoryZSet):
            return SparkZSet.of_rows(self._spark(), rows.columns, rows.weights())
        return SparkZSet.of_table(self._spark(), rows.consolidate().table)

    def fitting(self, rows: "Held") -> "Held":
        """The same Z-set in the engine for its size."""
        if isinstance(rows, MemoryZSet):
            if rows.size() <= self.few_rows:
                return rows
            rows = self.in_arrow(rows) if self.most_bytes else self.on_spark(rows)
        held: Any = rows
        in_arrow = not isinstance(held, MemoryZSet) and not _is_on_spark(held)
        return self.on_spark(held) if in_arrow and held.nbytes > self.most_bytes else rows

    def in_arrow(self, rows: MemoryZSet) -> "ArrowZSet":
        """The same Z-set in Arrow."""
        from viewkeeper.algebra.arrow import ArrowZSet

        return ArrowZSet.of_memory(rows)


class AdaptiveZSet:
    """A Z-set that is in memory, in Arrow or on Spark; see `zset.ZSet` for what the operations mean."""

    __slots__ = ("_engines", "_file", "_held", "_in_arrow", "_known_large", "_on_spark", "columns")

    def __init__(self, engines: Engines, held: "Held", file: "Path | None" = None) -> None:
        self._engines = engines
        self._held = engines.fitting(held)
        self._in_arrow: ArrowZSet | None = None
        self._on_spark: SparkZSet | None = None
        """the same Z-set in the engines for larger ones, where it was needed"""
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
        """Whether it is held as rows of Python; only for those who watch over the engines."""
        return isinstance(self._held, MemoryZSet)

    @property
    def on_driver(self) -> bool:
        """Whether its rows are in this process, as rows or as columns."""
        return not _is_on_spark(self._held)

    @property
    def columnar(self) -> "pa.Table | None":
        """Its rows with their weights, each once, if they are held in Arrow."""
        return None if self.in_memory or not self.on_driver else self._arrow().consolidate().table

    def to_arrow(self, types: Sequence[str]) -> "ArrowZSet":
        """The same Z-set in Arrow; with the names of SQL types, which rows in memory do not tell."""
        from viewkeeper.algebra.arrow import ArrowZSet

        if isinstance(self._held, MemoryZSet):
            return ArrowZSet.of_rows(self.columns, self._held.weights(), types)
        if self.on_driver:
            return self._arrow().typed(types)
        if self._file is None:
            return ArrowZSet.of_table(self._spark().frame.toArrow())
        import pyarrow.parquet as pq

        return ArrowZSet.of_table(pq.read_table(self._file))

    def most_rows(self) -> int:
        """There are no more rows than these; it takes no job to know, or one that reads no columns."""
        return self._held.size() if self.on_driver else int(self.frame.count())

    def _spark(self) -> "SparkZSet":
        held: Any = self._held
        if _is_on_spark(held):
            return cast("SparkZSet", held)
        if self._on_spark is None:
            self._on_spark = self._engines.on_spark(held)
        return self._on_spark

    def _arrow(self) -> "ArrowZSet":
        held: Any = self._held
        if not isinstance(held, MemoryZSet):
            return cast("ArrowZSet", held)
        if self._in_arrow is None:
            self._in_arrow = self._engines.in_arrow(held)
        return self._in_arrow

    def _with(self, other: "AdaptiveZSet") -> tuple[Any, Any]:
        """Both in the engine for the larger one."""
        if not self.on_driver or not other.on_driver:
            return self._spark(), other._spark()
        if self.in_memory and other.in_memory:
            return self._held, other._held
        return self._arrow(), other._arrow()

    def _made(self, held: "Held") -> "AdaptiveZSet":
        return AdaptiveZSet(self._engines, held)

    def _nothing(self) -> bool:
        """Whether it is empty and that is known without a job."""
        return self.on_driver and self._held.is_empty()

    # --- a group under + ---

    def __add__(self, other: "AdaptiveZSet") -> "AdaptiveZSet":
        if self.columns == other.columns and (self._nothing() or other._nothing()):
            return other if self._nothing() else self
        mine, theirs = self._with(other)
        return self._made(mine + theirs)

    def __sub__(self, other: "AdaptiveZSet") -> "AdaptiveZSet":
        return self + (-other)

    def __neg__(self) -> "AdaptiveZSet":
        return self._made(-self._held)

    # --- relational operations, linear in the weights ---

    def join(
        self, other: "AdaptiveZSet", on: On, where: tuple[Expression, ...], keep: tuple[str, ...]
    ) -> "AdaptiveZSet":
        if self._nothing() or other._nothing():
            return self._engines.zset(keep)
        mine, theirs = self._with(other)
        if not _is_on_spark(mine) and not (
            _compile(where, self.columns + other.columns) and self._joins_here(mine, theirs, on)
        ):
            mine, theirs = self._spark(), other._spark()
        return self._made(mine.join(theirs, on, where, keep))

    def _joins_here(self, mine: Any, theirs: Any, on: On) -> bool:
        """Counted beforehand: a join that explodes must not fill the memory to find out."""
        engines, rows = self._engines, isinstance(mine, MemoryZSet)
        most = engines.most_rows if rows else max(engines.most_rows, engines.most_bytes // BYTES_PER_PAIR)
        if rows and mine.size() * theirs.size() <= most:
            return True
        return bool(mine.pairs(theirs, on) <= most)

    def select(self, conditions: tuple[Expression, ...]) -> "AdaptiveZSet":
        if self._nothing():
            return self
        return self._made(self._able_to(conditions).select(conditions))

    def project(self, output: tuple[tuple[str, Expression], ...]) -> "AdaptiveZSet":
        if self._nothing():
            return self._engines.zset(tuple(name for name, _ in output))
        return self._made(self._able_to(tuple(expression for _, expression in output)).project(output))

    def _able_to(self, expressions: tuple[Expression, ...]) -> "Held":
        """The engine that evaluates these expressions."""
        return self._held if _compile(expressions, self.columns) else self._spark()

    def keep(self, columns: tuple[str, ...]) -> "AdaptiveZSet":
        return self._made(self._held.keep(columns))

    def rename(self, columns: tuple[str, ...]) -> "AdaptiveZSet":
        return self._made(self._held.rename(columns))

    def tag(self, name: str, value: int) -> "AdaptiveZSet":
        return self._made(self._held.tag(name, value))

    def split(self) -> "dict[Any, AdaptiveZSet]":
        return {value: self._made(part) for value, part in self._looked_at().split().items()}

    # --- not linear: set semantics, for the keyed algorithms ---

    def distinct(self) -> "AdaptiveZSet":
        return self._made(self._held.distinct())

    def matching(self, keys: "AdaptiveZSet", on: On) -> "AdaptiveZSet":
        if self._nothing() or keys._nothing():
            return self._engines.zset(self.columns)
        mine, theirs = self._with(keys)
        return self._made(mine.matching(theirs, on))

    def key_delete(self, keys: "AdaptiveZSet", on: On) -> "AdaptiveZSet":
        if self._nothing() or keys._nothing():
            return self
        mine, theirs = self._with(keys)
        return self._made(mine.key_delete(theirs, on))

    # --- looking inside ---

    def is_empty(self) -> bool:
        held = self._looked_at()
        return not _is_on_spark(held) and held.is_empty()

    def values(self, columns: tuple[str, ...]) -> list[Row]:
        return self._looked_at().values(columns)

    def weights(self) -> Iterator[tuple[Row, int]]:
        return self._looked_at().weights()

    def size(self) -> int:
        return self._looked_at().size()

    def _looked_at(self) -> "Held":
        """What is held, in memory if it is small enough for that."""
        if not self.on_driver and not self._known_large:
            rows = self._spark().weights_up_to(self._engines.most_rows)
            if rows is None:
                self._held = self._spark().computed_once()
                self._known_large = True
            else:
                self._held = self._engines.fitting(MemoryZSet(self.columns, rows))
        return self._held

    def __repr__(self) -> str:
        return repr(self._held)


def _is_on_spark(held: Any) -> bool:
    """Asked without importing Spark."""
    return hasattr(held, "frame")


@lru_cache(maxsize=4096)
def _compile(expressions: tuple[Expression, ...], columns: tuple[str, ...]) -> bool:
    """Whether the in-memory engine evaluates all of these."""
    try:
        for expression in expressions:
            expression.compile(columns)
    except ExpressionError:
        return False
    return True
