"""Signed rows in Spark: the same as in `signed_rows.py`, for what is large."""

from collections.abc import Sequence
from typing import Any

from viewkeeper.algebra.pyspark_names import Column, DataFrame, F
from viewkeeper.errors import BadDelta
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import STATE, WEIGHT, check_names, columns_of
from viewkeeper.lake.tables.signed_rows import Figures, SignedRows, no_weight


def stamped_frame(rows: SignedRows) -> DataFrame | None:
    """The changes in Spark as one DataFrame, each with its state; None if there are none."""
    total: DataFrame | None = None
    for state, frame in rows.frames:
        stamped = conformed_frame(rows.view, frame).withColumn(STATE, F.lit(state).cast("bigint"))
        total = stamped if total is None else total.unionAll(stamped)
    return total


def figures_in_job(states: Sequence[int]) -> "dict[str, Column]":
    """The same counted by Spark while it writes the rows: aggregates to observe."""
    weight, state = F.col(WEIGHT), F.col(STATE)
    return {
        "rows": F.count(F.lit(1)),
        **{f"growth_{s}": F.coalesce(F.sum(F.when(state == s, weight)), F.lit(0)) for s in states},
    }


def figures_of_job(observed: dict[str, Any]) -> Figures:
    """From what Spark has observed."""
    growth = {int(name.removeprefix("growth_")): n for name, n in observed.items() if name.startswith("growth_")}
    return Figures(observed["rows"], growth)


def conformed_frame(view: Definition, frame: "DataFrame") -> "DataFrame":
    """The same for a DataFrame. Spark converts between integers and decimals, and fails on a row that does not fit."""
    given = dict(columns_of(frame.schema))
    check_names(view.name, view.columns, list(given))
    if WEIGHT not in frame.columns:
        raise no_weight(view)
    for name, type in view.columns:
        if not _convertible(given[name], type):
            raise BadDelta(f"a change of {view.name} has {given[name]} in column {name}", f"CAST it to {type}")
    columns = [_exact(F.col(quoted(name)), given[name], type).alias(name) for name, type in view.columns]
    return frame.select(*columns, F.col(WEIGHT).cast("bigint").alias(WEIGHT)).filter(F.col(WEIGHT) != 0)


def quoted(name: str) -> str:
    """A column name for Spark's parser."""
    return "`" + name.replace("`", "``") + "`"


_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def _convertible(given: str, wanted: str) -> bool:
    """Whether values of one type can be exact values of the other."""
    if given.replace(" ", "") == wanted.replace(" ", "") or given == "VOID":
        return True
    given, wanted = given.partition("(")[0], wanted.partition("(")[0]
    if wanted in (*_INTEGERS, "DECIMAL"):
        return given in (*_INTEGERS, "DECIMAL")
    return wanted == "DOUBLE" and given in ("FLOAT", *_INTEGERS[:3])


def _exact(column: Column, given: str, wanted: str) -> Column:
    """A conversion that fails on a value that does not fit, whatever the session makes of overflow."""
    converted = column.cast(wanted)
    if given.replace(" ", "") == wanted.replace(" ", "") or given == "VOID":
        return converted
    message = F.concat(column.cast("string"), F.lit(f" does not fit {wanted}"))
    return F.when(converted.cast(given).eqNullSafe(column), converted).otherwise(F.raise_error(message).cast(wanted))
