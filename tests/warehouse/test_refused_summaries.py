"""Summaries that cannot be kept as they are asked for, and views that cannot be over summaries. Nothing is loaded."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.cli.main import viewkeeper
from viewkeeper.errors import DefinitionError, UnsupportedClause

BY_CITY = "SELECT city, COUNT(*) AS n FROM shop.sales GROUP BY city"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    monkeypatch.chdir(tmp_path)
    database = sqlite3.connect("shop.db")
    database.executescript("CREATE TABLE sales (id INTEGER PRIMARY KEY, city TEXT, day DATE)")
    with Warehouse.open("lake") as warehouse:
        warehouse.add_source("shop", "sqlite:///shop.db", install=True)
        yield warehouse
    database.close()


@pytest.mark.parametrize("refresh", ["manual", "every 5 minutes"])
def test_a_complete_summary_is_not_deferred(warehouse: Warehouse, refresh: str) -> None:
    properties = f"TBLPROPERTIES ('consistency' = 'complete', 'refresh' = '{refresh}')"
    with pytest.raises(DefinitionError, match=f"refreshed {refresh}: between two refreshes it skips states"):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW by_city {properties} AS {BY_CITY}")


@pytest.mark.parametrize("name", ["by_city", "BY_CITY", "cities", "cities_total"])
@pytest.mark.parametrize("select", ["SELECT n FROM {}", "SELECT SUM(n) AS n FROM {}"])
def test_no_view_is_over_a_summary(warehouse: Warehouse, name: str, select: str) -> None:
    warehouse.create_view(f"CREATE MATERIALIZED VIEW by_city AS {BY_CITY}")
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW cities AS SELECT city, COUNT(*) AS n FROM shop.sales GROUP BY CUBE (city)"
    )
    with pytest.raises(UnsupportedClause, match=f"{name} is a summary, and a view cannot be over one"):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS {select.format(name)}")


def test_a_family_is_created_from_the_command_line(warehouse: Warehouse) -> None:
    warehouse.close()
    cube = "CREATE MATERIALIZED VIEW {} AS SELECT city, day, COUNT(*) AS n FROM shop.sales GROUP BY ROLLUP (city, day)"
    said = CliRunner().invoke(viewkeeper, ["create-view", cube.format("a"), "-w", "lake"])
    assert said.exit_code == 0, said.output
    assert said.output == (
        "created a, 3 tables (a_city, a_city_day, a_total) with 1 row, in group shop.sales summaries: summary-delta, "
        "strong consistency\n"
    )
    told = CliRunner().invoke(viewkeeper, ["create-view", cube.format("b"), "-w", "lake", "--json"])
    made = json.loads(told.output)
    assert (made["view"], made["tables"], made["rows"]) == ("b", ["b_city", "b_city_day", "b_total"], 1)
