"""Columns of sources may have any name: all kinds of views over them, on the driver and in Spark."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra import adaptive
from viewkeeper.algebra.adaptive import Engines
from viewkeeper.maintenance import collected_rows as collected
from viewkeeper.maintenance import contents
from viewkeeper.maintenance.self_maintained import following
from viewkeeper.maintenance.summaries import first_content, input_changes
from viewkeeper.maintenance.summaries import round as rounds
from viewkeeper.storage.self_maintained import STORAGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "i d"
NAMES = ["a`b", "a.b", "select", "größe 日", "it's", 'say "x"', " ", "`", "``", "{b}", "%s", "1", "x;--", "(p)=\t"]
SHOWN = {name: name if not set(name) & set(" ,;{}()\n\t=") else f"c{place}" for place, name in enumerate(NAMES)}
"""what views call them: other readers of Delta take no blank in a name"""


def spark_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def sqlite_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def listed(alias: str, names: list[str]) -> str:
    return ", ".join(f"{alias}.{spark_name(name)} AS {spark_name(SHOWN[name])}" for name in names)


JOIN = f"FROM s.f f JOIN s.d d ON f.ref = d.{spark_name(KEY)}"
WIDE = f"SELECT f.{spark_name(KEY)} AS id, {listed('f', NAMES)}, f.num {JOIN}"
GROUPS = ", ".join(f"f.{spark_name(name)}" for name in NAMES)
BY_D = f"d.{spark_name('a`b')}, d.{spark_name(' ')}"
MEASURES = (
    f"COUNT(*) AS `n``n`, AVG(f.num) AS `a``v`, MIN(f.{spark_name('a.b')}) AS `m.m`, "
    f"COUNT(DISTINCT f.{spark_name('``')}) AS `c``c`"
)
VIEWS = {
    "join`ed": ("", WIDE),
    "of_view": ("", "SELECT `a``b`, `a.b`, COUNT(*) AS `n.n` FROM `join``ed` GROUP BY `a``b`, `a.b`"),
    "by_all": ("", f"SELECT {listed('f', NAMES)}, SUM(f.num) AS `s.s` FROM s.f f GROUP BY {GROUPS}"),
    "by_d": ("", f"SELECT d.{spark_name('a`b')}, d.{spark_name(' ')} AS blank, {MEASURES} {JOIN} GROUP BY {BY_D}"),
    "recomputed": (
        "'core' = 'stored', 'minmax' = 'recompute', 'refresh' = 'manual', 'group' = 'g'",
        f"SELECT d.`a``b`, MIN(f.`a.b`) AS `m``x` {JOIN} GROUP BY d.`a``b`",
    ),
    "cubed": ("", "SELECT f.`a``b`, f.`select`, COUNT(*) AS n FROM s.f f GROUP BY ROLLUP(f.`a``b`, f.`select`)"),
}
STORED = {"driver": tuple(STORAGES), "spark": ("partial-join",)}
"""the storages that each engine is tried with: they write their SQL in one way"""


class Database:
    """A fact and a dimension with all these columns."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        columns = ", ".join(f"{sqlite_name(name)} TEXT" for name in NAMES)
        for table in ("f", "d"):
            key = f"{sqlite_name(KEY)} INTEGER PRIMARY KEY"
            self._connection.execute(f"CREATE TABLE {table} ({key}, {columns}, ref INTEGER, num INTEGER)")
        for number in range(1, 4):
            self.insert("d", number)
            self.insert("f", number, number)
            self.insert("f", 10 + number, number)

    def insert(self, table: str, key: int, ref: int | None = None) -> None:
        row = [key, *(f"{name}{key % 2}" for name in NAMES), ref, key * 10]
        self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def change(self, step: int) -> None:
        self._connection.execute("BEGIN")
        for number in range(20 + step * 10, 24 + step * 10):
            self.insert("f", number, number % 4)
        self.insert("d", 5 + step)
        self._connection.execute(f"UPDATE d SET {sqlite_name('a`b')} = 'moved{step}' WHERE {sqlite_name(KEY)} = 1")
        self._connection.execute(f"DELETE FROM f WHERE {sqlite_name(KEY)} = {11 + step}")
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(params=["driver", "spark"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "spark":
        for module, names in {
            input_changes: ("MOST_CHANGES_ON_DRIVER",),
            rounds: ("SMALL",),
            contents: ("MOST_ON_DRIVER", "SMALL"),
            first_content: ("SMALL",),
            collected: ("MOST_ROWS",),
            following: ("FEW", "MOST_CHANGES"),
        }.items():
            for name in names:
                monkeypatch.setattr(module, name, 0)
        monkeypatch.setattr(adaptive, "MOST_BYTES", 0)
        monkeypatch.setattr(Engines.__init__, "__defaults__", (0, 0))
    return str(request.param)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "s.db")) as made:
        yield made


def test_columns_of_sources_may_have_any_name(
    tmp_path: Path, spark: "SparkSession", database: Database, engine: str
) -> None:
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as warehouse:
        warehouse.add_source("s", f"sqlite:///{tmp_path}/s.db", install=True)
        stored = {storage: (f"'storage' = '{storage}'", WIDE) for storage in STORED[engine]}
        for name, (properties, select) in {**VIEWS, **stored}.items():
            told = f"TBLPROPERTIES ({properties}) " if properties else ""
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {spark_name(name)} {told}AS {select}")
        database.change(0)
        warehouse.catch_up()
        warehouse.refresh()
        assert warehouse.status().halted == {}
        _assert_right(warehouse, [*VIEWS, *stored])
        for number, name in enumerate(("join`ed", "by_all")):
            rows = warehouse.read(name)
            first = spark_name(rows.columns[1])
            counted = warehouse.sql(f"SELECT {first}, COUNT(*) FROM {spark_name(name)} GROUP BY {first}").collect()
            assert sum(row[1] for row in counted) == rows.count() == warehouse.arrow(name).num_rows
            assert warehouse.changes(name, 0).columns[:-2] == rows.columns
            assert warehouse.changes(name, 0).count() > 0
            warehouse.publish(name, tmp_path / f"copy{number}")
        answered = warehouse.sql(f"SELECT d.` `, SUM(f.num) AS `x``y` {JOIN} GROUP BY d.` `")
        assert answered.columns == [" ", "x`y"]
        assert answered.count() == 2
        if engine == "driver":
            reloaded = ("join`ed", "by_all", next(iter(stored)))
            for name in reloaded:
                warehouse.reload(name)
            database.change(1)
            warehouse.catch_up()
            _assert_right(warehouse, reloaded)


def _assert_right(warehouse: Warehouse, views: Iterable[str]) -> None:
    audits = warehouse.audits(*views)
    assert [audit.view for audit in audits if not audit.clean] == []
    assert all(audit.rows for audit in audits)
