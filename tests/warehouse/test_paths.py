"""The folder of a view, as another Delta reader opens it: always the current table, or none."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from images import copy
from lakes import ORDER_TYPES, orders

from viewkeeper.errors import UnknownView
from viewkeeper.lake.writer import Writer
from viewkeeper.warehouse import Warehouse

BUCKETS = "CREATE MATERIALIZED VIEW buckets AS SELECT bucket, COUNT(*) AS n FROM s.orders GROUP BY bucket"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A summary over SQLite."""
    write(tmp_path, "CREATE TABLE orders (id INTEGER PRIMARY KEY, bucket INTEGER, amount INTEGER)")
    write(tmp_path, "INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("s", f"sqlite:///{tmp_path / 'orders.db'}", install=True)
        warehouse.create_view(BUCKETS)
    return tmp_path / "lake"


def write(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "orders.db")) as connection, connection:
        connection.execute(statement)


def by_another_reader(path: Path, *columns: str) -> list[tuple[object, ...]]:
    """The rows of the table, as deltalake reads them."""
    rows = DeltaTable(str(path)).to_pyarrow_dataset().to_table().select(list(columns)).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def check_left(*paths: Path) -> None:
    for path in paths:
        with pytest.raises(TableNotFoundError):
            DeltaTable(str(path))


def test_the_path_is_the_current_table_through_whatever_happens_to_the_view(lake: Path) -> None:
    with Warehouse.open(lake) as warehouse:
        first = warehouse.path_of("buckets")
        assert by_another_reader(first, "bucket", "n") == [(1, 1), (2, 1)]

        write(lake.parent, "INSERT INTO orders VALUES (3, 2, 30)")
        warehouse.catch_up()
        assert warehouse.path_of("BUCKETS") == first
        assert by_another_reader(first, "bucket", "n") == [(1, 1), (2, 2)]

        old = warehouse.snapshot()
        warehouse.alter_view(BUCKETS.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(amount) AS total"))
        altered = warehouse.path_of("buckets")
        assert altered != first
        assert by_another_reader(altered, "bucket", "n", "total") == [(1, 1, 10), (2, 2, 50)]
        check_left(first)
        # Whoever holds the commit before reads on.
        assert sorted(tuple(row.values()) for row in old.arrow("buckets").to_pylist()) == [(1, 1), (2, 2)]
        old.close()

        warehouse.reload("buckets")
        reloaded = warehouse.path_of("buckets")
        assert by_another_reader(reloaded, "bucket", "n", "total") == [(1, 1, 10), (2, 2, 50)]

        warehouse.drop_view("buckets")
        check_left(first, altered, reloaded)
        with pytest.raises(UnknownView):
            warehouse.path_of("buckets")

        warehouse.create_view(BUCKETS)
        again = warehouse.path_of("buckets")
        assert by_another_reader(again, "bucket", "n") == [(1, 1), (2, 2)]
        check_left(*{first, altered, reloaded} - {again})
        warehouse.vacuum(0, grace=0)
        assert [path.name for path in (lake / "views").glob("buckets*")] == [again.name]


def test_a_folder_that_a_killed_writer_has_not_left_is_left_by_the_next(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(prepared)
    with monkeypatch.context() as patch, Warehouse.open(root, compaction=None) as wh:
        patch.setattr(Writer, "_leave_folders", lambda *_: None)
        first, dropped = wh.path_of("orders"), wh.path_of("visits")
        with wh.commit() as commit:
            commit.drop("orders")
            commit.drop("visits")
            commit.create("orders", ORDER_TYPES, rows=orders((5, "new")), group="shop")
        assert by_another_reader(first, "id")
    with Warehouse.open(root, compaction=None) as wh:
        check_left(first, dropped)
        assert by_another_reader(wh.path_of("orders"), "id") == [(5,)]
