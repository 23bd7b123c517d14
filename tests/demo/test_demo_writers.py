"""The process that writes to the demo's databases: what it leaves does not depend on when it wrote."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.demo.business import transactions
from viewkeeper.demo.databases import open_database
from viewkeeper.demo.demonstration import make_databases
from viewkeeper.demo.retail import SHOP, TABLES
from viewkeeper.demo.writers import Writers
from viewkeeper.demo.writing import Order
from viewkeeper.errors import SourceError

pytestmark = pytest.mark.processes


def wait_until(true: Callable[[], bool]) -> None:
    while not true():
        threading.Event().wait(0.01)


def contents(urls: dict[str, str]) -> dict[str, list[Any]]:
    found = {}
    for name, url in urls.items():
        database = open_database(url)
        for table in TABLES[name]:
            found[f"{name}.{table.name}"] = sorted(database.rows(table))
        database.close()
    return found


def carry_out(urls: dict[str, str], seed: int, seconds: float, numbers: dict[str, int]) -> None:
    """The same transactions with no writers: one database after the other, at once."""
    for name, url in urls.items():
        database = open_database(url)
        for transaction in transactions(name, seed, seconds)[: numbers[name]]:
            database.carry_out(transaction)
        database.close()


def test_the_contents_do_not_depend_on_the_timing(tmp_path: Path) -> None:
    live, at_once = (make_databases(tmp_path / name, 5) for name in ("live", "at_once"))
    assert contents(live) == contents(at_once)
    with Writers(Order(live, 5, 1.5)) as writers:
        writers.begin()
        wait_until(lambda: not writers.writing)
        committed = writers.stop()
    numbers = {name: len(times) for name, times in committed.items()}
    assert numbers == {name: len(transactions(name, 5, 1.5)) for name in TABLES}
    assert all(times == sorted(times) for times in committed.values())
    carry_out(at_once, 5, 1.5, numbers)
    assert contents(live) == contents(at_once)


def test_writers_stop_between_two_transactions(tmp_path: Path) -> None:
    stopped, replayed = (make_databases(tmp_path / name, 6) for name in ("stopped", "replayed"))
    with Writers(Order(stopped, 6, 500)) as writers:
        writers.begin()
        shop = sqlite3.connect(tmp_path / "stopped" / "shop.db")
        wait_until(lambda: shop.execute("PRAGMA data_version").fetchone()[0] > 1)
        shop.close()
        committed = writers.stop()
        assert not writers.writing
    numbers = {name: len(times) for name, times in committed.items()}
    assert 1 <= numbers[SHOP] < len(transactions(SHOP, 6, 500))
    carry_out(replayed, 6, 500, numbers)
    assert contents(stopped) == contents(replayed)


def test_writers_that_never_began_write_nothing(tmp_path: Path) -> None:
    urls = make_databases(tmp_path / "databases", 6)
    before = contents(urls)
    with Writers(Order(urls, 6, 500)) as writers:
        pass
    assert not writers.writing
    assert contents(urls) == before


def test_a_writer_that_fails_is_told(tmp_path: Path) -> None:
    urls = make_databases(tmp_path / "databases", 6)
    shop = sqlite3.connect(tmp_path / "databases" / "shop.db")
    shop.execute("DROP TABLE sales")
    shop.close()
    with Writers(Order(urls, 6, 0.1)) as writers:
        writers.begin()
        wait_until(lambda: not writers.writing)
        with pytest.raises(SourceError, match="no such table: sales"):
            writers.stop()


def test_a_database_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    urls = {"shop": f"sqlite:///{tmp_path}/nowhere/shop.db"}
    with Writers(Order(urls, 6, 0.1)) as writers, pytest.raises(SourceError, match="unable to open database file"):
        writers.begin()
