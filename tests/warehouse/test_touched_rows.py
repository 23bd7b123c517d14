"""A lookup reads the parts of a table that may have what is requested, and finds what is there."""

from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.lake.log.catalog import SORTED_BY
from viewkeeper.lake.tables import touched_rows as lookup
from viewkeeper.lake.tables.touched_rows import touched_rows

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


def looked_up(wh: Warehouse, asked: list[int | None], wanted: tuple[str, ...], room: float = inf) -> pa.Table | None:
    snapshot = wh._latest()
    values = pa.table({"x.a": pa.array(asked, pa.int64())})
    return touched_rows(snapshot.files, snapshot.catalog["_vk_t"], snapshot.record, ("x.a",), values, wanted, room)


def expected(content: dict[int, Any], asked: list[int | None]) -> list[Any]:
    return sorted(row for row in content.values() if row[1] in asked)


def rows_of(found: pa.Table | None) -> list[Any]:
    assert found is not None
    return sorted(zip(*found.to_pydict().values(), strict=True))


@pytest.fixture
def groups_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """How many groups of rows were read at a time, and whether whole rows of them."""
    read: list[tuple[int, bool]] = []
    reading = lookup._Part.read

    def noted(part: Any, groups: Any, schema: pa.Schema) -> pa.Table:
        read.append((len(groups), "x.t" in schema.names))
        return reading(part, groups, schema)

    monkeypatch.setattr(lookup._Part, "read", noted)
    return read


@pytest.mark.parametrize("asked", [list(range(40, 60)), [70_000], [None], [-5, 10**9], []])
def test_a_cluster_is_found_in_few_groups(
    table: Any, asked: list[int | None], groups_read: list[tuple[int, bool]]
) -> None:
    wh, content = table
    assert rows_of(looked_up(wh, asked, ("x.id", "x.a", "x.t"))) == expected(content, asked)
    # The base has ten groups; each of the three changes is a file.
    assert sum(groups for groups, whole in groups_read if whole) <= 2 + 3


def test_only_wanted_columns_are_read(table: Any) -> None:
    wh, content = table
    found = looked_up(wh, [44, 45], ("x.id",))
    assert found is not None
    assert found.column_names == ["x.id"]
    assert sorted(found["x.id"].to_pylist()) == sorted(number for number, a, _ in content.values() if a in (44, 45))


SPREAD = [*range(0, ROWS, 5000), None]


def test_what_is_spread_over_the_table_is_left_to_the_caller(table: Any) -> None:
    wh, _ = table
    assert looked_up(wh, SPREAD, ("x.id",)) is None
    assert looked_up(wh, SPREAD, ("x.id",), room=30 * ROWS) is None, "x.id, x.a and the weight of each row"


def test_what_is_spread_over_a_table_that_is_too_large_is_found_group_by_group(
    table: Any, groups_read: list[tuple[int, bool]]
) -> None:
    wh, content = table
    assert rows_of(looked_up(wh, SPREAD, ("x.id", "x.a", "x.t"), room=20 * ROWS)) == expected(content, SPREAD)
    assert max(groups for groups, whole in groups_read if whole) == 1


def test_groups_without_a_value_are_read_only_by_what_they_are_looked_up_by(
    table: Any, groups_read: list[tuple[int, bool]]
) -> None:
    wh, content = table
    # Rows with NULL would have had these values, which lie in the ranges of all groups.
    absent = [number * 7919 % ROWS for number in range(0, ROWS, 1000)]
    assert expected(content, absent) == []
    assert rows_of(looked_up(wh, [7, *absent], ("x.id", "x.a", "x.t"), room=0)) == expected(content, [7])
    # One to know how much memory a row takes, and one with the value.
    assert sum(groups for groups, whole in groups_read if whole) == 2
