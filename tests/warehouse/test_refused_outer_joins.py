"""An outer join is understood, and refused before anything is loaded: by create_view and by explain."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from viewkeeper import Warehouse
from viewkeeper.errors import UnsupportedClause

JOINED = "shop.sales s FULL JOIN shop.cities c ON s.city = c.city LEFT JOIN shop.sales t ON t.id = s.id"
OUTER = f"CREATE MATERIALIZED VIEW named TBLPROPERTIES ('storage' = 'outerjoin') AS SELECT s.id, c.land FROM {JOINED}"


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


@pytest.mark.parametrize("asked", [Warehouse.create_view, Warehouse.explain])
def test_not_maintained(warehouse: Warehouse, asked: Callable[[Warehouse, str], object]) -> None:
    with pytest.raises(UnsupportedClause) as refused:
        asked(warehouse, OUTER)
    assert "named has FULL JOIN c, LEFT JOIN t, and outer joins are not maintained yet" in refused.value.detail
    assert "keep the inner join as the view" in refused.value.hint
    assert warehouse.status().views == ()


def test_not_summarized(warehouse: Warehouse) -> None:
    with pytest.raises(UnsupportedClause, match="FULL JOIN is not supported in a summary") as refused:
        warehouse.create_view(f"CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM {JOINED}")
    assert "make the outer join a view of its own" in refused.value.hint
