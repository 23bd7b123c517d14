"""The chain of the demo: its rows and its transactions are functions of the seed, and fit each other."""

import sqlite3
from pathlib import Path

import pytest

from viewkeeper.demo.business import Delete, Insert, Update, transactions
from viewkeeper.demo.databases import open_database
from viewkeeper.demo.retail import CATALOGUE, CUSTOMERS, SHOP, TABLES, first_rows

SECONDS = 40


@pytest.mark.parametrize("database", TABLES)
def test_everything_follows_from_the_seed(database: str) -> None:
    assert first_rows(database, 3) == first_rows(database, 3)
    assert first_rows(database, 3) != first_rows(database, 4)
    assert transactions(database, 3, SECONDS) == transactions(database, 3, SECONDS)
    assert transactions(database, 3, SECONDS) != transactions(database, 4, SECONDS)


@pytest.mark.parametrize("database", TABLES)
def test_a_longer_run_begins_like_a_short_one(database: str) -> None:
    short = transactions(database, 3, 10)
    assert transactions(database, 3, SECONDS)[: len(short)] == short


@pytest.mark.parametrize("database", TABLES)
def test_rows_come_change_and_go(database: str) -> None:
    kinds = {type(change) for transaction in transactions(database, 7, 30) for change in transaction}
    assert kinds == {Insert, Update, Delete}


def test_the_shop_changes_several_tables_in_one_transaction() -> None:
    together = [{change.table.name for change in transaction} for transaction in transactions(SHOP, 7, 30)]
    assert {"sales", "stores"} in together


def test_the_shop_is_ahead_of_the_others_at_times() -> None:
    """It sells what is not listed yet, to people who are not known yet; later they are."""
    for database, table, column in ((CATALOGUE, "items", 2), (CUSTOMERS, "people", 3)):
        listed = {
            change.row[0] for one in transactions(database, 7, 30) for change in one if isinstance(change, Insert)
        }
        first = {row[0] for row in first_rows(database, 7)[table]}
        sold = {
            change.row[column]
            for one in transactions(SHOP, 7, 30)
            for change in one
            if isinstance(change, Insert) and change.table.name == "sales"
        }
        assert sold & listed - first, f"nothing new of {table} is sold"


@pytest.mark.parametrize("database", TABLES)
def test_every_change_hits_one_row(database: str, tmp_path: Path) -> None:
    """Replayed by SQLite itself: an update or a deletion of a row that is not there would change nothing."""
    url = f"sqlite:///{tmp_path}/{database}.db"
    filled = open_database(url)
    filled.fill(database, 5)
    filled.close()
    connection = sqlite3.connect(tmp_path / f"{database}.db")
    for transaction in transactions(database, 5, SECONDS):
        for change in transaction:
            assert connection.execute(*change.statement("?")).rowcount == 1, change
    if database == SHOP:
        (contradictions,) = connection.execute(
            "SELECT COUNT(*) FROM (SELECT city FROM stores GROUP BY city HAVING COUNT(DISTINCT region) > 1)"
        ).fetchone()
        assert contradictions == 0, "a city is in two regions: the hierarchy of the stores would not hold"
    connection.close()
