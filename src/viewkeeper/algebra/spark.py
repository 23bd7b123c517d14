"""The Z-set engine on Spark: a DataFrame with the columns of the Z-set, and a weight.

    A + B  =  A UNION ALL B                                     -A  =  the weights negated
    A ⋈ B  =  A JOIN B, the weights multiplied                  π, σ  =  SELECT, WHERE
    consolidated A  =  SELECT ..., SUM(w) GROUP BY all columns HAVING SUM(w) <> 0

All of it is lazy, and linear in the weights: a row may be there several times, and a deletion beside the row that it
deletes. They are added up (`consolidated`) only where that shows: to look inside, for `distinct`, for the keys of
`matching`, and before an expression that can fail on a row, so that a row that is not there any more is not evaluated.
Where every weight is positive nothing cancels, and then that is not needed.

Spark evaluates a condition as early as it can, also below a GROUP BY. An expression that can fail is therefore put
into CASE WHEN weight <> 0, which keeps it above the sum that it mentions. It may still see a row that the rest of a
join drops: so it is in Spark, and in memory too if the sweep starts at that operand.

The session is used as it is. Equality and grouping do not depend on its settings; expressions do: they are meant for
`spark.sql.ansi.enabled=true` (without it an overflow gives NULL instead of an error) and for the session time zone UTC
(TIMESTAMP literals without an offset, parts of a TIMESTAMP, casts from and to it).
"""

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from logging import LogRecord
from operator import and_
from typing import Any

from viewkeeper.algebra.arrow_rows import arrow_table, rows_of, weighted_rows
from viewkeeper.algebra.column_types import common_type, needs_cast
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.pyspark_names import (
    AnalysisException,
    Column,
    DataFrame,
    F,
    PySparkException,
    PySparkLogger,
    QueryContextType,
    SparkSession,
    StringType,
    from_arrow_schema,
)
from viewkeeper.algebra.zset import WEIGHT, On, Row
from viewkeeper.errors import DefinitionError, ExpressionError
from viewkeeper.sql import type_families as types
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.type_families import Family, SqlType, parse_type, sql_type

_LEFT, _RIGHT = "_vk_left", "_vk_right"


class SparkZSet:
    """A Z-set held by Spark; see `zset.ZSet` for what the operations mean.

    `consolidated`: every row is there once, with a weight that is not 0. `positive`: every weight is above 0.
    """

    __slots__ = ("columns", "consolidated", "frame", "positive")

    def __init__(self, frame: DataFrame, *, consolidated: bool = False, positive: bool = False) -> None:
        """From a DataFrame with a column `_vk_weight`; what it promises about the rows is taken as true."""
        fields = {field.name: field.dataType for field in frame.schema.fields}
        self.columns = tuple(name for name in frame.columns if name != WEIGHT)
        if WEIGHT not in fields:
            raise ValueError(f"the frame has no column {WEIGHT}: {self.columns}")
        _refuse_lookalikes(self.columns)
        self.frame = frame.select(
            # A collation would make texts equal that are not the same.
            *(
                _col(name).cast("STRING").alias(name) if isinstance(fields[name], StringType) else _col(name)
                for name in self.columns
            ),
            _col(WEIGHT).cast("BIGINT").alias(WEIGHT),
        )
        self.consolidated = consolidated
        self.positive = positive

    @classmethod
    def of_frame(cls, frame: DataFrame) -> "SparkZSet":
        """Each row of a DataFrame without weights once."""
        return cls(frame.select("*", F.lit(1).alias(WEIGHT)), positive=True)

    @classmethod
    def of_rows(
        cls,
        spark: SparkSession,
        columns: tuple[str, ...],
        weights: Iterable[tuple[Row, int]],
        types: Sequence[str] | None = None,
    ) -> "SparkZSet":
        """From rows on the driver. A type is the name of a Spark type; where there is none the values decide."""
        _refuse_lookalikes(columns)
        rows = list(MemoryZSet(columns, weights).weights())
        table = arrow_table(columns, WEIGHT, rows)
        frame = spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
        made = cls._of(columns, frame, consolidated=True, positive=all(weight > 0 for _, weight in rows))
        return made._cast(dict(zip(columns, types, strict=True))) if types else made

    @classmethod
    def of_table(cls, spark: SparkSession, table: Any) -> "SparkZSet":
        """From an Arrow table in which every row is there once, with its weight last."""
        frame = spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
        return cls._of(tuple(table.column_names[:-1]), frame, consolidated=True, positive=False)

    @classmethod
    def _of(cls, columns: tuple[str, ...], frame: DataFrame, *, consolidated: bool, positive: bool) -> "SparkZSet":
        """Takes over a frame that has these columns and a BIGINT weight, in this order."""
        _refuse_lookalikes(columns)
        made = cls.__new__(cls)
        made.columns = columns
        made.frame = frame
        made.consolidated = consolidated
        made.positive = positive
        return made

    def _like(self, frame: DataFrame) -> "SparkZSet":
        """The same columns and promises over another frame."""
        return SparkZSet._of(self.columns, frame, consolidated=self.consolidated, positive=self.positive)

    def like(self, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]]) -> "SparkZSet":
        return SparkZSet.of_rows(self.frame.sparkSession, columns, weights)

    # --- a group under + ---

    def __add__(self, other: "SparkZSet") -> "SparkZSet":
        if self.columns != other.columns:
            raise ValueError(f"cannot add Z-sets over {self.columns} and {other.columns}")
        mine, theirs = _types(self.frame), _types(other.frame)
        common = {name: common_type(name, mine[name], name, theirs[name]).name for name in self.columns}
        frame = self._cast(common).frame.unionAll(other._cast(common).frame)
        return SparkZSet._of(self.columns, frame, consolidated=False, positive=self.positive and other.positive)

    def __sub__(self, other: "SparkZSet") -> "SparkZSet":
        return self + (-other)

    def __neg__(self) -> "SparkZSet":
        frame = self.frame.select(*map(_col, self.columns), (-_col(WEIGHT)).alias(WEIGHT))
        return SparkZSet._of(self.columns, frame, consolidated=self.consolidated, positive=False)

    # --- relational operations, linear in the weights ---

    def join(self, other: "SparkZSet", on: On, where: tuple[Expression, ...], keep: tuple[str, ...]) -> "SparkZSet":
        left, right = self.frame.alias(_LEFT), other.frame.alias(_RIGHT)
        pairs = left.join(right, reduce(and_, _equalities(self, other, on))) if on else left.crossJoin(right)
        added = tuple(column for column in other.columns if column not in self.columns)
        frame = pairs.select(
            *(_col(column, _LEFT) for column in self.columns),
            *(_col(column, _RIGHT) for column in added),
            (_col(WEIGHT, _LEFT) * _col(WEIGHT, _RIGHT)).alias(WEIGHT),
        )
        consolidated = self.consolidated and other.consolidated and len(added) == len(other.columns)
        positive = self.positive and other.positive
        joined = SparkZSet._of(self.columns + added, frame, consolidated=consolidated, positive=positive)
        return joined.select(where).keep(keep)

    def select(self, conditions: tuple[Expression, ...]) -> "SparkZSet":
        if not conditions:
            return self
        kept = self._as_declared(conditions)
        if safe := [condition.sql for condition in conditions if not condition.can_fail]:
            kept = kept._where(" AND ".join(safe), reduce(and_, map(F.expr, safe)))
        if failing := [condition.sql for condition in conditions if condition.can_fail]:
            # As in memory, a condition that is not true ends the evaluation: NULL AND x would still need x.
            tests = [F.coalesce(F.expr(sql), F.lit(False)) for sql in failing]
            kept = kept._without_cancelled()._where(" AND ".join(failing), _if_present(reduce(and_, tests)))
        return kept

    def _where(self, sql: str, test: Column) -> "SparkZSet":
        with _analysing(sql):
            return self._like(self.frame.filter(test))

    def project(self, output: tuple[tuple[str, Expression], ...]) -> "SparkZSet":
        rows = self._as_declared(expression for _, expression in output)
        if any(expression.can_fail for _, expression in output):
            rows = rows._without_cancelled()
        made = [
            (_if_present(F.expr(made.sql)) if made.can_fail else F.expr(made.sql)).alias(name) for name, made in output
        ]
        with _analysing(", ".join(expression.sql for _, expression in output)):
            frame = rows.frame.select(*made, _col(WEIGHT))
        whole = {expression.is_column for _, expression in output} >= set(self.columns)
        return SparkZSet._of(
            tuple(name for name, _ in output),
            frame,
            consolidated=rows.consolidated and whole,
            positive=rows.positive,
        )

    def keep(self, columns: tuple[str, ...]) -> "SparkZSet":
        if columns == self.columns:
            return self
        frame = self.frame.select(*map(_col, columns), _col(WEIGHT))
        consolidated = self.consolidated and set(columns) >= set(self.columns)
        return SparkZSet._of(columns, frame, consolidated=consolidated, positive=self.positive)

    def rename(self, columns: tuple[str, ...]) -> "SparkZSet":
        if len(columns) != len(self.columns):
            raise ValueError(f"cannot rename {self.columns} to {columns}")
        renamed = (_col(old).alias(new) for old, new in zip(self.columns, columns, strict=True))
        frame = self.frame.select(*renamed, _col(WEIGHT))
        return SparkZSet._of(columns, frame, consolidated=self.consolidated, positive=self.positive)

    # --- not linear: set semantics, for the keyed algorithms ---

    def distinct(self) -> "SparkZSet":
        present = self.consolidate().frame.filter(_col(WEIGHT) > 0)
        frame = present.select(*map(_col, self.columns), F.lit(1).cast("BIGINT").alias(WEIGHT))
        return SparkZSet._of(self.columns, frame, consolidated=True, positive=True)

    def matching(self, keys: "SparkZSet", on: On) -> "SparkZSet":
        return self._by_keys(keys, on, "left_semi")

    def key_delete(self, keys: "SparkZSet", on: On) -> "SparkZSet":
        return self._by_keys(keys, on, "left_anti")

    def _by_keys(self, keys: "SparkZSet", on: On, how: str) -> "SparkZSet":
        wanted = keys._without_cancelled()
        same = _equalities(self, wanted, on, null_safe=True) or [F.lit(True)]
        return self._like(self.frame.alias(_LEFT).join(wanted.frame.alias(_RIGHT), reduce(and_, same), how))

    # --- tags ---

    def tag(self, name: str, value: int) -> "SparkZSet":
        tag = F.lit(value).cast("BIGINT").alias(name)
        return SparkZSet._of(
            (name, *self.columns),
            self.frame.select(tag, *map(_col, self.columns), _col(WEIGHT)),
            consolidated=self.consolidated,
            positive=self.positive,
        )

    def split(self) -> dict[Any, "SparkZSet"]:
        whole = self.computed_once()
        tag, columns = self.columns[0], self.columns[1:]
        return {
            value: whole._like(whole.frame.filter(_col(tag).eqNullSafe(F.lit(value)))).keep(columns)
            for (value,) in whole.values((tag,))
        }

    # --- adding up ---

    def consolidate(self) -> "SparkZSet":
        """The same Z-set with every row once."""
        if self.consolidated:
            return self
        added_up = self.frame.groupBy(*map(_col, self.columns)).agg(F.sum(_col(WEIGHT)).alias(WEIGHT))
        frame = added_up.filter(_col(WEIGHT) != 0)
        return SparkZSet._of(self.columns, frame, consolidated=True, positive=self.positive)

    def _without_cancelled(self) -> "SparkZSet":
        """The same Z-set, in which every row that occurs is there."""
        return self if self.positive else self.consolidate()

    # --- types ---

    def _cast(self, names: dict[str, str]) -> "SparkZSet":
        """The same Z-set with columns of the named types; what is named '' stays as it is."""
        present = _types(self.frame)
        target = {name: _named_type(type) for name, type in names.items() if type}
        casts = {name: type for name, type in target.items() if needs_cast(name, present[name], type)}
        if not casts:
            return self
        columns = (
            _col(name).cast(casts[name].name).alias(name) if name in casts else _col(name) for name in self.columns
        )
        return self._like(self.frame.select(*columns, _col(WEIGHT)))

    def _as_declared(self, expressions: Iterable[Expression]) -> "SparkZSet":
        """With the columns of the expressions in the types that these are written for; values may have had others."""
        columns = set(self.columns)
        declared = (pair for expression in expressions for pair in expression.column_types)
        return self._cast({name: type for name, type in declared if type and name in columns})

    # --- looking inside ---

    def is_empty(self) -> bool:
        """Stops at the first row that is there: one after it on which an expression fails is not noticed."""
        with _evaluating():
            return self._without_cancelled().frame.isEmpty()

    def weights(self) -> Iterator[tuple[Row, int]]:
        with _evaluating():
            table = self.consolidate().frame.toArrow()
        return weighted_rows(table)

    def values(self, columns: tuple[str, ...]) -> list[Row]:
        with _evaluating():
            table = self._without_cancelled().frame.select(*map(_col, columns)).distinct().toArrow()
        return list(rows_of(table))

    def weights_up_to(self, most: int) -> list[tuple[Row, int]] | None:
        """The rows if there are at most so many, else None; one job in either case."""
        with _evaluating():
            table = self.consolidate().frame.limit(most + 1).toArrow()
        return None if table.num_rows > most else list(weighted_rows(table))

    def size(self) -> int:
        with _evaluating():
            return self.consolidate().frame.count()

    def computed_once(self) -> "SparkZSet":
        """The same Z-set, whose rows the next job that needs them leaves with the executors until nothing refers to
        them. An executor that is lost takes its share along: what is computed from it then fails, to be done again."""
        return self.consolidate()._like(self.consolidate().frame.localCheckpoint(eager=False))

    def __repr__(self) -> str:
        return f"SparkZSet({', '.join(self.columns)})"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _col(name: str, side: str = "") -> Column:
    return F.col(f"{side}.{_quoted(name)}" if side else _quoted(name))


def _if_present(value: Column) -> Column:
    return F.when(_col(WEIGHT) != 0, value)


def _refuse_lookalikes(columns: tuple[str, ...]) -> None:
    spellings = {WEIGHT: WEIGHT}
    for column in columns:
        if (other := spellings.get(column.lower())) is not None:
            raise DefinitionError(
                f"two columns are called {other} and {column}, and Spark does not distinguish upper and lower case",
                "rename one of them",
            )
        spellings[column.lower()] = column


def _equalities(left: SparkZSet, right: SparkZSet, on: On, *, null_safe: bool = False) -> list[Column]:
    mine, theirs = _types(left.frame), _types(right.frame)
    equal = []
    for one, other in on:
        column, its_partner = _col(one, _LEFT), _col(other, _RIGHT)
        if common_type(one, mine[one], other, theirs[other]).family is Family.NULL:
            # Spark 4.3 finds no partner for a key of type void, whose NULL it cannot replace by a default.
            column, its_partner = column.cast("BOOLEAN"), its_partner.cast("BOOLEAN")
        equal.append(column.eqNullSafe(its_partner) if null_safe else column == its_partner)
    return equal


# --- types ---


@lru_cache(maxsize=1024)
def _named_type(name: str) -> SqlType:
    return types.NULL if name == "void" else sql_type(parse_type(name))


def _types(frame: DataFrame) -> dict[str, SqlType]:
    return {field.name: _named_type(field.dataType.simpleString()) for field in frame.schema.fields}


# --- errors ---

_DATA_EXCEPTION = "22"  # the class of SQLSTATE in which the errors of ANSI mode are


@contextmanager
def _analysing(sql: str) -> Iterator[None]:
    try:
        with _quiet():
            yield
    except AnalysisException as error:
        raise ExpressionError(f"{sql}: {_message(error)}", "correct the expression") from None


@contextmanager
def _evaluating() -> Iterator[None]:
    """Turns what fails on a row into ExpressionError; everything else goes on as it is."""
    try:
        with _quiet():
            yield
    except PySparkException as error:
        if not (error.getSqlState() or "").startswith(_DATA_EXCEPTION):
            raise
        fragments = [
            context.fragment() for context in error.getQueryContext() if context.contextType() is QueryContextType.SQL
        ]
        raise ExpressionError(
            ": ".join([*fragments[:1], _message(error)]),
            "correct the row at its source, or guard the expression with CASE WHEN",
        ) from None


def _message(error: PySparkException) -> str:
    """What happened, without the code around it and without Spark's advice to turn ANSI mode off."""
    text = re.sub(r"^\[\S+\] | SQLSTATE: \w+$", "", error.getMessage() or str(error))
    return re.split(r" (?:Use [`'\"]try_|If necessary set |Correct the value)", text)[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps pyspark from logging a failure with the stack of the JVM: the caller gets an error for it."""
    thread = threading.get_ident()

    def from_elsewhere(record: LogRecord) -> bool:
        return record.thread != thread

    loggers = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    for logger in loggers:
        logger.addFilter(from_elsewhere)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(from_elsewhere)
