"""Declared foreign keys: relied upon while they hold, found when they do not. All but the audit is without Spark."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from viewkeeper import Warehouse
from viewkeeper.cli.audit import _show
from viewkeeper.errors import DefinitionError
from viewkeeper.explaining.summary_explanation import Explanation
from viewkeeper.planner.summaries.naming import BROKEN, METRICS

TABLES = """
CREATE TABLE stores (storeID INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, category TEXT);
CREATE TABLE pos (id INTEGER PRIMARY KEY, storeID INTEGER, itemID INTEGER, qty INTEGER);
INSERT INTO stores VALUES (1, 'Bern'), (2, 'Basel');
INSERT INTO items VALUES (1, 'office'), (2, 'food'), (3, 'office'), (4, 'food'), (5, 'office'), (6, 'food');
INSERT INTO pos VALUES (1, 1, 1, 3), (2, 1, 2, 1), (3, 2, 1, 7), (4, 2, 2, 5), (5, 1, 1, 2), (6, 1, 1, 4), (7, 2, 1, 1);
"""
ITEM = ("pos.itemID", "shop.items.itemID")


class Shop:
    """by_category joins items and by_store does not: one can be computed from the other if every sale has its item."""

    def __init__(self, folder: Path, *foreign_keys: tuple[str, str]) -> None:
        self.path, self.url = folder / "shop.db", f"sqlite:///{folder}/shop.db"
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(TABLES)
        self.wh = Warehouse.open(folder / "lake")
        self.declare(*foreign_keys)
        joined = "FROM shop.pos p JOIN shop.items i ON p.itemID = i.itemID"
        self.create("by_category", f"SELECT p.storeID, category, COUNT(*) AS n, SUM(qty) AS q {joined} GROUP BY 1, 2")
        self.create("by_store", "SELECT storeID, COUNT(*) AS n, SUM(qty) AS q FROM shop.pos GROUP BY storeID")

    def declare(self, *foreign_keys: tuple[str, str]) -> None:
        self.wh.add_source("shop", self.url, install=True, foreign_keys=foreign_keys)

    def create(self, name: str, select: str) -> None:
        self.wh.create_view(f"CREATE MATERIALIZED VIEW {name} AS {select}")

    def change(self, script: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(f"BEGIN; {script}; COMMIT;")
        self.wh.catch_up()

    def assert_right(self) -> None:
        """As SQLite has it now."""
        queries = {
            "by_store": "SELECT storeID, COUNT(*), SUM(qty) FROM pos GROUP BY 1",
            "by_category": "SELECT storeID, category, COUNT(*), SUM(qty) FROM pos NATURAL JOIN items GROUP BY 1, 2",
        }
        summaries = self.wh._keeper.summaries
        for name, query in queries.items():
            table = summaries.contents.table(name, self.wh._keeper.writer.last)
            seen = [column for column in table.column_names if not column.startswith("_vk_")]
            with closing(sqlite3.connect(self.path)) as connection:
                expected = sorted(connection.execute(query).fetchall())
            assert sorted(tuple(row.values()) for row in table.select(seen).to_pylist()) == expected

    def above(self, name: str) -> str:
        """What its summary-delta is computed from."""
        explained = self.wh.explain(name)
        assert isinstance(explained, Explanation)
        (chosen,) = (choice.above for choice in explained.tables[0].choices if choice.chosen)
        return chosen

    def broken(self) -> object:
        (told,) = self.wh.status().metrics[METRICS].values()
        return told.get(BROKEN)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path, ITEM)
    yield made
    made.wh.close()


MANY = "; ".join(f"INSERT INTO pos VALUES ({n}, {n % 2 + 1}, {n % 6 + 1}, 1)" for n in range(10, 40))


def test_a_summary_is_computed_from_one_that_joins_more_if_a_foreign_key_is_declared(shop: Shop) -> None:
    shop.change(MANY)
    assert shop.above("by_store") == "by_category"
    (drawn,) = shop.wh.lattice("by_store")
    assert "by the foreign key to items" in drawn.text
    shop.change("DELETE FROM pos WHERE id IN (1, 12, 13); INSERT INTO pos VALUES (50, 2, 2, 9)")
    shop.assert_right()
    assert shop.broken() is None


def test_a_broken_foreign_key_costs_time_and_no_rows(shop: Shop) -> None:
    shop.change(MANY)
    shop.change("INSERT INTO pos VALUES (50, 1, 9, 100), (51, 1, 1, 1), (52, 2, NULL, 7)")  # there is no item 9
    shop.assert_right()
    assert shop.broken() == {"shop.items": 2}
    shop.change("INSERT INTO items VALUES (9, 'tools')")
    shop.assert_right()
    shop.change("UPDATE pos SET qty = 200 WHERE id = 50")
    shop.assert_right()
    assert shop.broken() is None
    shop.change("DELETE FROM items WHERE itemID = 1; INSERT INTO pos VALUES (60, 1, 1, 5)")
    shop.assert_right()
    shop.change("DELETE FROM pos WHERE itemID = 1")
    shop.assert_right()
    assert not any(view.halted for view in shop.wh.status().views)


def test_a_foreign_key_that_is_withdrawn_is_not_relied_upon(shop: Shop) -> None:
    shop.change(MANY)
    assert shop.wh.sources[0].foreign_keys == (ITEM,)
    shop.declare(("shop.pos.itemID", ""))
    assert shop.wh.sources[0].foreign_keys == ()
    assert shop.above("by_store") != "by_category"
    shop.change("DELETE FROM pos WHERE id IN (1, 12, 13)")
    shop.assert_right()


def test_without_a_foreign_key_nothing_is_relied_upon(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.change(MANY)
    assert shop.above("by_store") != "by_category"
    (drawn,) = shop.wh.lattice("by_store")
    assert "if every foreign key held, from by_category" in drawn.text
    with pytest.raises(DefinitionError, match="is no foreign key"):
        shop.declare(("pos.itemID", "items.itemID"))
    shop.wh.close()


def test_an_audit_counts_facts_without_a_row(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.change("INSERT INTO pos VALUES (50, 1, 9, 100), (51, 2, NULL, 7)")
    by_store, by_category = shop.wh.audits("by_store", "by_category")
    assert by_store.clean
    assert by_category.clean
    assert by_store.broken_foreign_keys == by_category.broken_foreign_keys == (("shop.items", 2),)
    _show(by_store, 10)
    assert "2 facts without a row in shop.items, which a declared foreign key promises" in capsys.readouterr().out
