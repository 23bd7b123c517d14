"""Summaries whose fact and dimension have keys of two types: compared as Spark compares them, and not changed by it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse

PAIRS: dict[str, tuple[str, str, list[Any], list[Any], list[tuple[Any, ...]]]] = {
    # types of the fact's column and of the key; their values before and after; what is grouped by the fact's column
    "bigint-decimal": ("BIGINT", "DECIMAL(12, 1)", [1, 2], [2, 9007199254740993], [(2, 2)]),
    "int-decimal": ("INT", "DECIMAL(4, 2)", [1, 2], [2, 2_000_000_000], [(2, 2)]),
    "decimal-bigint": ("DECIMAL(10, 2)", "BIGINT", ["1.00", "2.00"], ["2.00", "99999999.99"], [(Decimal("2.00"), 2)]),
    "decimals": ("DECIMAL(10, 3)", "DECIMAL(6, 1)", ["1.000", "2.000"], ["2.000", "2.001"], [(Decimal("2.000"), 2)]),
    "int-bigint": ("INT", "BIGINT", [1, 2], [2, -5], [(2, 2)]),
    "bigint-int": ("BIGINT", "INT", [1, 2], [2, 3_000_000_000], [(2, 2)]),
}


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[str, str, list[Any], list[Any], list[tuple[Any, ...]]]:
    return PAIRS[request.param]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        yield connection


def test_keys_of_two_types(
    tmp_path: Path,
    database: sqlite3.Connection,
    pair: tuple[str, str, list[Any], list[Any], list[tuple[Any, ...]]],
) -> None:
    of_fact, of_key, before, after, by_key = pair
    database.execute(f"CREATE TABLE f (id INTEGER PRIMARY KEY, k {of_fact}, q INTEGER)")
    database.execute(f"CREATE TABLE d (k {of_key} PRIMARY KEY, name TEXT) WITHOUT ROWID")
    database.executemany("INSERT INTO f (k, q) VALUES (?, 1)", [(value,) for value in before])
    database.executemany("INSERT INTO d VALUES (?, ?)", [(1, "one"), (2, "two")])
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("s", f"sqlite:///{tmp_path}/s.db", install=True)
        joined = "FROM s.f f JOIN s.d d ON f.k = d.k"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW named AS SELECT name, COUNT(*) AS n {joined} GROUP BY name")
        warehouse.create_view(f"CREATE MATERIALIZED VIEW by_key AS SELECT f.k, SUM(q) AS n {joined} GROUP BY f.k")
        assert _rows(warehouse, "named") == [("one", 1), ("two", 1)]
        database.executemany("INSERT INTO f (k, q) VALUES (?, 1)", [(value,) for value in after])
        # A key that no fact can have, and one that moves.
        if "DECIMAL" in of_key:
            database.execute("INSERT INTO d VALUES (2.5, 'half')")
        database.execute("UPDATE d SET name = 'TWO' WHERE k = 2")
        database.execute("DELETE FROM d WHERE k = 1")
        warehouse.catch_up()
        assert warehouse.status().halted == {}
        assert _rows(warehouse, "named") == [("TWO", 2)]
        assert _rows(warehouse, "by_key") == by_key


def _rows(warehouse: Warehouse, view: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in warehouse.arrow(view).to_pylist())
