"""Views that move to a group in which there are others: the numbers of their states go on, and do not begin again."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.errors import StateGone
from viewkeeper.lake.views.arrow_changes import changes_of, read_changed
from viewkeeper.serving.data_source.opened import snapshot_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOIN = "CREATE OR REPLACE MATERIALIZED VIEW {0} TBLPROPERTIES('group' = '{1}') AS SELECT t.id FROM s.{0}_rows t"
SUM = """CREATE OR REPLACE MATERIALIZED VIEW {0} TBLPROPERTIES('refresh' = '{1}') AS
    SELECT k, COUNT(*) AS n FROM s.facts GROUP BY k"""


class Place:
    """A database, and a warehouse over it."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, warehouse: Warehouse) -> None:
        self.folder, self.connection, self.warehouse = folder, connection, warehouse
        warehouse.add_source("s", f"sqlite:///{folder}/s.db", install=True)

    def write(self, table: str, *numbers: int) -> None:
        for number in numbers:
            self.connection.execute(f"INSERT INTO {table} VALUES ({number}, {number % 2})")
            self.warehouse.catch_up()

    def changes(self, view: str, since: int) -> Counter[tuple[Any, ...]]:
        """What somebody who follows a view is told, added up."""
        snapshot = snapshot_of(str(self.folder / "lake"), None)
        part = changes_of(snapshot, view, since, snapshot.state(view))
        told: Counter[tuple[Any, ...]] = Counter()
        for row, weight in read_changed(self.warehouse._files.store, part).weights():
            told[row[:-1]] += weight
        return +told

    def rows(self, view: str, state: int | None = None) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row.values()) for row in self.warehouse.arrow(view, state).to_pylist())

    def numbers(self, view: str) -> list[int]:
        return [state.state for state in self.warehouse.states(view)]


@pytest.fixture
def there(tmp_path: Path, spark: "SparkSession") -> Iterator[Place]:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        for table in ("v_rows", "w_rows", "facts"):
            connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, k INTEGER)")
        with Warehouse.open(tmp_path / "lake", spark) as warehouse:
            yield Place(tmp_path, connection, warehouse)


def test_a_view_that_moves_to_another_group(there: Place) -> None:
    there.warehouse.create_view(JOIN.format("v", "one"))
    there.warehouse.create_view(JOIN.format("w", "two"))
    there.write("v_rows", *range(5))
    before = there.numbers("v")[-1]
    there.warehouse.create_view(JOIN.format("v", "two"))
    assert there.numbers("w")[0] == 0
    assert there.numbers("v")[0] > before > there.numbers("w")[0]
    there.write("v_rows", *range(5, 9))
    there.write("w_rows", 1)
    with pytest.raises(StateGone):
        there.changes("v", before)
    # Those who were in the group are not concerned, whatever number they are asked for.
    assert there.changes("w", 0) == there.changes("w", 2) == there.rows("w") == Counter([(1,)])
    there.warehouse.compact()
    assert there.rows("w", 0) == there.rows("w", 2) == Counter()
    assert there.changes("w", 2) == Counter([(1,)])


def test_a_summary_that_moves_to_another_lattice(there: Place) -> None:
    there.warehouse.create_view(SUM.format("often", "continuous"))
    there.warehouse.create_view(SUM.format("rarely", "manual"))
    there.write("facts", *range(5))
    before = there.numbers("often")[-1]
    there.warehouse.create_view(SUM.format("often", "manual"))
    rarely = there.numbers("rarely")
    assert there.numbers("often")[0] > before > rarely[0]
    there.write("facts", 5)
    there.warehouse.refresh()
    assert there.rows("often") == there.rows("rarely") == Counter([(0, 3), (1, 3)])
    assert there.changes("rarely", rarely[0]) == there.rows("rarely")
    assert there.changes("rarely", rarely[0] + 2).total() > 0
    assert there.warehouse.audit("often").clean
