"""The changes of many states as one table for the summaries over them: by the number of rows, not of states."""

import pyarrow as pa
import pytest

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.maintenance import typed_rows
from viewkeeper.maintenance.typed_rows import signed_rows
from viewkeeper.sql.relation import Relation

SALES = Relation("s.sales", "s", ("id", "price"), ("INT", "DOUBLE"))


def no_spark():
    raise AssertionError("Spark was requested")


def test_thousands_of_changes_become_columns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = []
    canonical = typed_rows.canonical_floats
    monkeypatch.setattr(typed_rows, "canonical_floats", lambda array: arrays.append(array) or canonical(array))
    deltas = [MemoryZSet(SALES.columns, [((number, 0.5), 1), ((number - 1, 0.5), -1)]) for number in range(5_000)]
    table, rows = signed_rows(deltas, SALES)
    assert len(arrays) == len(SALES.columns)
    assert rows == 2, "what one state inserts the next one deletes"
    assert sorted(table.to_pylist(), key=str) == [
        {"id": -1, "price": 0.5, WEIGHT: -1},
        {"id": 4_999, "price": 0.5, WEIGHT: 1},
    ]


def test_rows_and_columns_are_added_up_together() -> None:
    engines = Engines(no_spark, most_bytes=1 << 20)
    columns = pa.table({"id": [1, 2], "price": [1.0, -0.0], WEIGHT: [1, 1]})
    small = engines.zset(SALES.columns, [((1, 1.0), -1), ((2, 0.0), 2)])
    table, rows = signed_rows([small, columns, MemoryZSet(SALES.columns)], SALES)
    assert (rows, table.to_pylist()) == (1, [{"id": 2, "price": 0.0, WEIGHT: 3}])
    assert signed_rows([], SALES) == (None, 0)
    assert signed_rows([small, -small], SALES) == (None, 0)
