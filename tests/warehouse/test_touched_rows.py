"""A lookup reads the parts of a table that may have what is asked for, and finds what is there."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.warehouse import touched_rows as lookup
from viewkeeper.warehouse.catalog import SORTED_BY

ROWS = 150_000
COLUMNS = {"x.id": "BIGINT", "x.a": "BIGINT", "x.t": "STRING"}


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Rows in no order, some of them deleted and inserted since, and NULLs; looked up by x.a."""
    rows = {
        "x.id": list(range(ROWS)),
        "x.a": [None if number % 1000 == 0 else (number * 7919) % ROWS for number in range(ROWS)],
        "x.t": [f"t{number}" for number in range(ROWS)],
    }
    content = dict(zip(rows["x.id"], zip(*rows.values(), strict=True), strict=True))
    with Warehouse.open(tmp_path / "lake", compaction=None) as wh:
        with wh.commit() as commit:
            commit.create("_vk_t", COLUMNS, rows=pa.table(rows), distinct=True, properties={SORTED_BY: ["x.a"]})
        for state in range(3):
            change = MemoryZSet(tuple(COLUMNS), [(content[1000 + state], -1), ((ROWS + state, 42 + state, "new"), 1)])
            with wh.commit() as commit:
                commit.state("main", {}, {"_vk_t": change})
            del content[1000 + state]
            content[ROWS + state] = (ROWS + state, 42 + state, "new")
        yield wh, content


def looked_up(wh: Warehouse, asked: list[int | None], wanted: tuple[str, ...]) -> pa.Table | None:
    snapshot = wh._latest()
    values = pa.table({"x.a": pa.array(asked, pa.int64())})
    return lookup.touched_rows(snapshot.files, snapshot.catalog["_vk_t"], snapshot.record, ("x.a",), values, wanted)


@pytest.mark.parametrize("asked", [list(range(40, 60)), [70_000], [None], [-5, 10**9], []])
def test_a_cluster_is_found_in_few_groups(table: Any, asked: list[int | None], monkeypatch: pytest.MonkeyPatch) -> None:
    wh, content = table
    read: list[int] = []
    reading = lookup._read
    monkeypatch.setattr(
        lookup,
        "_read",
        lambda *given: read.append(len(given[4])) or reading(*given),  # type: ignore[func-returns-value]
    )
    found = looked_up(wh, asked, ("x.id", "x.a", "x.t"))
    assert found is not None
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(
        row for row in content.values() if row[1] in asked
    )
    # The base has ten groups; each of the three changes is a file.
    assert sum(read) <= 2 + 3


def test_only_wanted_columns_are_read(table: Any) -> None:
    wh, content = table
    found = looked_up(wh, [44, 45], ("x.id",))
    assert found is not None
    assert found.column_names == ["x.id"]
    assert sorted(found["x.id"].to_pylist()) == sorted(number for number, a, _ in content.values() if a in (44, 45))


def test_what_is_spread_over_the_table_is_left_to_the_caller(table: Any) -> None:
    wh, _ = table
    assert looked_up(wh, list(range(0, ROWS, 5000)), ("x.id",)) is None
