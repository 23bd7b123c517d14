"""A warehouse with a join and a summary over a shop, in the current folder."""

from pathlib import Path

import pytest
from sales_shop import write

from viewkeeper import Warehouse


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", "lake")
    write("CREATE TABLE sales (id INTEGER PRIMARY KEY, item TEXT); INSERT INTO sales VALUES (1, 'pen')")
    with Warehouse.open("lake") as warehouse:
        warehouse.add_source("shop", "sqlite:///shop.db", install=True)
        warehouse.create_view("CREATE MATERIALIZED VIEW joined AS SELECT id, item FROM shop.sales")
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW by_item AS SELECT item, COUNT(*) AS n FROM shop.sales GROUP BY item"
        )
    return tmp_path / "lake"
