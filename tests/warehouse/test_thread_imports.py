"""Threads import nothing whose parts import each other: two that do so at once may see a module half initialized."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from viewkeeper import Warehouse

SCRIPT = Path(__file__).with_name("importing_process.py")
VIEWS = (
    "CREATE MATERIALIZED VIEW named AS SELECT o.id, c.name, o.amount FROM shop.orders o JOIN crm.customers c"
    " ON c.id = o.customer",
    "CREATE MATERIALIZED VIEW large AS SELECT id, amount FROM shop.orders WHERE amount > 10",
    "CREATE MATERIALIZED VIEW held TBLPROPERTIES ('storage' = 'matview') AS SELECT o.id, c.name FROM shop.orders o"
    " JOIN crm.customers c ON c.id = o.customer",
    "CREATE MATERIALIZED VIEW by_customer AS SELECT customer, COUNT(*) AS n, SUM(amount) AS amount FROM shop.orders"
    " GROUP BY customer",
    "CREATE MATERIALIZED VIEW extremes AS SELECT customer, MIN(amount) AS least, MAX(amount) AS most FROM shop.orders"
    " GROUP BY customer",
    "CREATE MATERIALIZED VIEW by_name AS SELECT name, COUNT(*) AS n FROM crm.customers GROUP BY name",
)


def write(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"BEGIN; {script}; COMMIT;")


@pytest.fixture(scope="module")
def pending(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a warehouse of many groups, and changes at its sources that none of them has yet."""
    folder = tmp_path_factory.mktemp("pending")
    write(folder / "shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER)")
    write(folder / "crm.db", "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    before = os.getcwd()
    os.chdir(folder)
    try:
        with Warehouse.open("lake") as warehouse:
            warehouse.add_source("shop", "sqlite:///shop.db", install=True)
            warehouse.add_source("crm", "sqlite:///crm.db", install=True)
            for view in VIEWS:
                warehouse.create_view(view)
    finally:
        os.chdir(before)
    for number in range(8):
        write(folder / "crm.db", f"INSERT INTO customers VALUES ({number}, 'name {number % 5}')")
        write(folder / "shop.db", f"INSERT INTO orders VALUES ({number}, {number % 7}, {number * 3})")
    return folder


def start(pending: Path, place: Path, *options: str) -> "subprocess.Popen[str]":
    shutil.copytree(pending, place)
    return subprocess.Popen(
        [sys.executable, SCRIPT, "lake", *options],
        cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("options", [(), ("7",)], ids=["small", "spark"])
def test_no_thread_imports_an_engine(pending: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    process = start(pending, tmp_path / "copy", *options)
    told, _ = process.communicate(timeout=300)
    assert (process.returncode, told) == (0, "")


@pytest.mark.parametrize("starts", [4, pytest.param(50, marks=pytest.mark.soak)])
def test_many_starts_with_pending_changes(pending: Path, tmp_path: Path, starts: int) -> None:
    """Two at a time: a machine that is busy switches threads at other places."""
    for number in range(0, starts, 2):
        pair = [start(pending, tmp_path / str(number + one)) for one in range(2)]
        for process in pair:
            told, _ = process.communicate(timeout=300)
            assert (process.returncode, told) == (0, "")
