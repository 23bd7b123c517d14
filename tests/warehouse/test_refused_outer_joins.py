"""Outer joins of tables are maintained; what is still refused is refused before anything is loaded."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from viewkeeper import Warehouse
from viewkeeper.errors import DefinitionError, UnsupportedClause, ViewkeeperError

JOINED = "shop.sales s FULL JOIN shop.cities c ON s.city = c.city LEFT JOIN shop.sales t ON t.id = s.id"
ASKED = pytest.mark.parametrize("asked", [Warehouse.create_view, Warehouse.explain], ids=["create_view", "explain"])
Asked = Callable[[Warehouse, str], object]


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    database = sqlite3.connect(tmp_path / "shop.db")
    database.executescript(
        "CREATE TABLE sales (id INTEGER PRIMARY KEY, city TEXT); CREATE TABLE cities (city TEXT PRIMARY KEY, land TEXT)"
    )
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("shop", f"sqlite:///{tmp_path / 'shop.db'}", install=True)
        yield warehouse
    database.close()


@ASKED
def test_outer_joins_of_tables_are_maintained(warehouse: Warehouse, asked: Asked) -> None:
    asked(warehouse, f"CREATE MATERIALIZED VIEW named AS SELECT s.id, c.land FROM {JOINED}")


@ASKED
@pytest.mark.parametrize(
    ("properties", "error", "says"),
    [
        ("'storage' = 'remote'", DefinitionError, "only what is stored for it can maintain it"),
        ("'storage' = 'viewcache'", DefinitionError, "the storage viewcache keeps inner joins"),
        ("'algorithm' = 'sweep'", UnsupportedClause, "the property algorithm does not apply"),
    ],
)
def test_other_ways_to_keep_them(
    warehouse: Warehouse, asked: Asked, properties: str, error: type[ViewkeeperError], says: str
) -> None:
    with pytest.raises(error, match=says):
        asked(warehouse, f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS SELECT s.id FROM {JOINED}")
    assert warehouse.status().views == ()


@ASKED
def test_of_views(warehouse: Warehouse, asked: Asked) -> None:
    for table in ("sales", "cities"):
        properties = "TBLPROPERTIES ('group' = 'g')"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {table} {properties} AS SELECT * FROM shop.{table}")
    with pytest.raises(UnsupportedClause, match="an outer join of views") as refused:
        asked(warehouse, "CREATE MATERIALIZED VIEW v AS SELECT s.id FROM sales s LEFT JOIN cities c ON s.city = c.city")
    assert "the tables that those views read" in refused.value.hint


def test_summarized(warehouse: Warehouse) -> None:
    """A summary over an outer join is maintained operator by operator."""
    warehouse.create_view(f"CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM {JOINED}")
    assert warehouse.arrow("n")["n"].to_pylist() == [0]
