"""Rows on their way to a computation: as rows or as columns, few or many, with what has to be taken away again."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.errors import SourceError
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.maintenance import collected_rows as collected
from viewkeeper.maintenance.collected_rows import CollectedRows
from viewkeeper.sources.columnar import ColumnarRows
from viewkeeper.sources.lake.column_types import NAN, python_values
from viewkeeper.sql.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIXED = Relation("s.t", "s", ("k", "f", "d", "t"), ("BIGINT", "DOUBLE", "DECIMAL(9,2)", "TIMESTAMP"))
ROWS: list[tuple[Any, ...]] = [
    (number, NAN if number % 3 else 0.5, Decimal(number).scaleb(-2), datetime(2024, 1, 1, number % 24, tzinfo=UTC))
    for number in range(40)
]
Collecting = Callable[[Relation], CollectedRows]


@pytest.fixture
def collecting(tmp_path: Path, spark: "SparkSession") -> Collecting:
    return lambda relation: CollectedRows(relation, Engines(lambda: spark), LocalStore(tmp_path), "staged")


def columns(rows: list[tuple[Any, ...]]) -> ColumnarRows:
    types = (pa.int64(), pa.float64(), pa.decimal128(9, 2), pa.timestamp("us", "UTC"))
    arrays = [pa.array(values, type) for values, type in zip(zip(*rows, strict=True), types, strict=True)]
    return ColumnarRows(pa.record_batch(arrays, names=list(MIXED.columns)), python_values)


@pytest.mark.parametrize("most", [1000, 15])
def test_rows_and_columns_are_collected_alike(
    collecting: Collecting, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collected, "MOST_ROWS", most)
    monkeypatch.setattr(collected, "AT_ONCE", 5)
    rows = collecting(MIXED)
    rows.add(columns(ROWS[:10]))
    rows.add(ROWS[10:25])
    rows.add(columns(ROWS[25:]))
    for row in ROWS[3:6]:
        rows.add([row], -1)
    rows.add([ROWS[0]], 1)
    found = rows.result()
    assert found.in_memory == (most == 1000)
    assert found.most_rows() == (37 if found.in_memory else 44)
    expected = Counter({row: 1 for row in ROWS if row not in ROWS[3:6]}) + Counter({ROWS[0]: 1})
    assert dict(found.to_arrow(MIXED.types).weights()) == expected
    assert dict(found.weights()) == expected


def test_a_value_that_does_not_fit_is_an_error_of_the_source(
    collecting: Collecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collected, "MOST_ROWS", 1)
    with pytest.raises(SourceError, match=r"a row of s\.t does not fit its types"):
        collecting(MIXED).add([("one", 0.5, Decimal(1), None)])
