"""A group whose sources go on without concerning it: its vector advances, and no state is made."""

import sqlite3
from pathlib import Path

import pytest
from lakes import orders, place, prepare

from viewkeeper.errors import UnknownView
from viewkeeper.warehouse import Warehouse


def test_a_vector_advances_without_a_state(tmp_path: Path) -> None:
    prepare(tmp_path / "lake")
    with Warehouse.open(tmp_path / "lake") as wh:
        before = wh.states("orders")
        with wh.commit() as commit:
            commit.advance("shop", {"shop": place(50)})
        assert wh.states("orders") == before
        (status,) = [view for view in wh.status().views if view.view == "orders"]
        assert (status.state, status.vector) == (before[-1].state, {"shop": place(50)})
    with Warehouse.open(tmp_path / "lake") as wh:
        with wh.commit() as commit:
            commit.state("shop", {"shop": place(60)}, {"orders": orders((9, "pen"))})
        states = wh.states("orders")
        assert [state.state for state in states] == [state.state for state in before] + [before[-1].state + 1]
        assert states[-1].vector == {"shop": place(60)}
        assert states[:-1] == before


def test_a_state_of_another_source_goes_on_from_the_advanced_vector(tmp_path: Path) -> None:
    prepare(tmp_path / "lake")
    with Warehouse.open(tmp_path / "lake") as wh:
        with wh.commit() as commit:
            commit.advance("shop", {"shop": place(50)})
        with wh.commit() as commit:
            commit.state("shop", {"web": place(1)})
        assert wh.states("orders")[-1].vector == {"shop": place(50), "web": place(1)}


def test_an_unknown_group_does_not_advance(tmp_path: Path) -> None:
    prepare(tmp_path / "lake")
    with Warehouse.open(tmp_path / "lake") as wh, pytest.raises(UnknownView), wh.commit() as commit:
        commit.advance("nobody", {"shop": place(50)})


def test_a_source_may_forget_what_concerned_nobody(tmp_path: Path) -> None:
    """SQLite forgets what is acknowledged: a run that starts further back would have lost its position."""
    database = sqlite3.connect(tmp_path / "shop.db")
    database.execute("PRAGMA journal_mode = WAL")
    for table in ("orders", "visits"):
        database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, item INTEGER)")
    with Warehouse.open(tmp_path / "lake") as wh:
        wh.add_source("shop", f"sqlite:///{tmp_path}/shop.db", install=True)
        wh.create_view("CREATE MATERIALIZED VIEW v AS SELECT o.id AS id, o.item AS item FROM shop.orders o")
        for number in range(3):
            for table, count in (("visits", 5), ("orders", 1), ("visits", 5)):
                for _ in range(count):
                    database.execute(f"INSERT INTO {table} (item) VALUES (?)", (number,))
                    database.commit()
            end = wh.catch_up()
            (status,) = wh.status().views
            assert status.vector == end
            assert status.state == number + 1
            assert wh.audit("v").clean
    database.close()
