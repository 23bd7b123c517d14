"""Self-maintained views whose join keys are of two types, or stand in two equalities, or are zeros of either sign; and
what is remembered of their structures when a state fails.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from viewkeeper import Warehouse
from viewkeeper.errors import UnsupportedClause
from viewkeeper.maintenance.self_maintained import following
from viewkeeper.maintenance.stored_states import StoredStates
from viewkeeper.storage.self_maintained import STORAGES

FEW = {"rows": 10**6, "arrow": 0}


@pytest.fixture(params=FEW)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(following, "FEW", FEW[request.param])
    return str(request.param)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "lake") as opened:
        yield opened


def create(warehouse: Warehouse, tmp_path: Path, storage: str, select: str, level: str = "strong") -> None:
    warehouse.add_source("s", f"sqlite:///{tmp_path / 's.db'}", install=True)
    properties = f"'storage' = '{storage}', 'consistency' = '{level}'"
    warehouse.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS {select}")


def shown(warehouse: Warehouse) -> list[Any]:
    return sorted(tuple(row.values()) for row in warehouse.arrow("v").to_pylist())


@pytest.mark.parametrize("storage", STORAGES)
def test_a_column_may_stand_in_two_equalities(
    warehouse: Warehouse, database: sqlite3.Connection, tmp_path: Path, storage: str, engine: str
) -> None:
    database.executescript(
        "CREATE TABLE r (id INTEGER PRIMARY KEY, x INTEGER);"
        "CREATE TABLE q (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);"
        "INSERT INTO r VALUES (1, 1), (2, 2); INSERT INTO q VALUES (1, 1, 1), (2, 2, 1)"
    )
    create(warehouse, tmp_path, storage, "SELECT r.id, q.id AS q FROM s.r r JOIN s.q q ON r.x = q.a AND r.x = q.b")
    database.executescript(
        "INSERT INTO r VALUES (3, 1); INSERT INTO q VALUES (3, 2, 2); UPDATE q SET b = 2 WHERE id = 2"
    )
    warehouse.catch_up()
    assert warehouse.status().halted == {}
    assert shown(warehouse) == [(1, 1), (2, 2), (2, 3), (3, 1)]


@pytest.mark.parametrize("storage", ["matview", "outerjoin", "viewcache"])
@pytest.mark.parametrize(
    ("types", "left", "right", "pairs"),
    [
        (("BIGINT", "INT"), [5, 3_000_000_000], [5, 6], [(1, 1)]),
        (("DECIMAL(10, 2)", "DECIMAL(8, 1)"), ["1.20", "1.25"], ["1.2", "1.3"], [(1, 1)]),
        (("BIGINT", "DECIMAL(8, 1)"), [7, 10**15], ["7.0", "7.5"], [(1, 1)]),
    ],
)
def test_join_keys_may_be_of_two_types(
    warehouse: Warehouse,
    database: sqlite3.Connection,
    tmp_path: Path,
    storage: str,
    engine: str,
    types: tuple[str, str],
    left: list[Any],
    right: list[Any],
    pairs: list[Any],
) -> None:
    """A value that the other type has not is equal to nothing there."""
    database.executescript(
        f"CREATE TABLE r (id INTEGER PRIMARY KEY, k {types[0]}); CREATE TABLE q (id INTEGER PRIMARY KEY, k {types[1]})"
    )
    create(warehouse, tmp_path, storage, "SELECT r.id, q.id AS q FROM s.r r JOIN s.q q ON r.k = q.k")
    for table, values in (("r", left), ("q", right), ("r", left)):
        first = database.execute(f"SELECT COUNT(*) + 1 FROM {table}").fetchone()[0]
        database.executemany(f"INSERT INTO {table} VALUES (?, ?)", enumerate(values, first))
        warehouse.catch_up()
    assert warehouse.status().halted == {}
    again = [(left_id + len(left), right_id) for left_id, right_id in pairs]
    assert shown(warehouse) == sorted([*pairs, *again])


@pytest.mark.parametrize("storage", ["matview", "viewcache"])
def test_zero_is_zero_with_either_sign(warehouse: Warehouse, tmp_path: Path, storage: str) -> None:
    for table, rows in (("r", {"x": [1.0, -0.0]}), ("q", {"id": [1, 2]})):
        (tmp_path / "files" / table).mkdir(parents=True)
        made = pa.table(rows | {"k": [1, 1]})
        pq.write_table(made, tmp_path / "files" / table / "a.parquet")
    warehouse.add_source("s", f"files://{tmp_path / 'files'}?poll=5ms", install=True)
    warehouse.create_view(
        f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('storage' = '{storage}') AS "
        "SELECT r.x, q.id FROM s.r r JOIN s.q q ON r.k = q.k"
    )
    pq.write_table(pa.table({"x": [1.0], "k": [1]}), tmp_path / "files" / "r" / "a.parquet")
    warehouse.catch_up()
    assert warehouse.status().halted == {}
    assert shown(warehouse) == [(1.0, 1), (1.0, 2)]


def test_a_column_with_the_name_of_our_numbers_is_refused(
    warehouse: Warehouse, database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.executescript("CREATE TABLE r (_vk_id INTEGER, k INTEGER); CREATE TABLE q (k INTEGER)")
    with pytest.raises(UnsupportedClause, match="has a column _vk_id"):
        create(warehouse, tmp_path, "matview", "SELECT q.k FROM s.r r JOIN s.q q ON r.k = q.k")


FAILING = "SELECT r.id, q.id AS q FROM s.r r JOIN s.q q ON r.k = q.k AND CAST(r.a AS DOUBLE) / q.b > 0"


@pytest.mark.parametrize("storage", STORAGES)
def test_what_a_state_that_failed_had_made_is_not_remembered(
    warehouse: Warehouse, database: sqlite3.Connection, tmp_path: Path, storage: str
) -> None:
    database.executescript(
        "CREATE TABLE r (id INTEGER PRIMARY KEY, k INTEGER, a INTEGER);"
        "CREATE TABLE q (id INTEGER PRIMARY KEY, k INTEGER, b INTEGER);"
        "INSERT INTO r VALUES (1, 1, 1); INSERT INTO q VALUES (1, 1, 1)"
    )
    create(warehouse, tmp_path, storage, FAILING, "complete")
    database.execute("INSERT INTO r VALUES (2, 1, 1)")
    warehouse.catch_up()
    database.execute("INSERT INTO r VALUES (3, 2, 1)")
    database.execute("INSERT INTO q VALUES (3, 2, 0)")
    warehouse.catch_up()
    assert "division by zero" in warehouse.status().halted["v"]
    database.executescript("DELETE FROM r WHERE id = 3; DELETE FROM q WHERE id = 3")
    warehouse.reload("v")
    database.execute("INSERT INTO q VALUES (4, 2, 1)")
    warehouse.catch_up()
    assert shown(warehouse) == [(1, 1), (2, 1)]
    hidden = {view.view: view.rows for view in warehouse.status().hidden if "_feed_" in view.view}
    assert hidden == dict.fromkeys(hidden, 0), "feeds store nothing"


@pytest.mark.parametrize("storage", STORAGES)
def test_a_commit_that_fails_leaves_nothing_to_remember(
    warehouse: Warehouse,
    database: sqlite3.Connection,
    tmp_path: Path,
    storage: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of several states each has a commit of its own, and the second of these fails."""
    database.executescript(
        "CREATE TABLE r (id INTEGER PRIMARY KEY, k INTEGER); CREATE TABLE q (id INTEGER PRIMARY KEY, k INTEGER);"
        "INSERT INTO r VALUES (1, 1); INSERT INTO q VALUES (1, 1)"
    )
    create(warehouse, tmp_path, storage, "SELECT r.id, q.id AS q FROM s.r r JOIN s.q q ON r.k = q.k", "complete")
    database.execute("INSERT INTO r VALUES (2, 1)")
    warehouse.catch_up()
    for number in (3, 4, 5):
        database.execute(f"INSERT INTO r VALUES ({number}, 2)")
    commit, calls = StoredStates.commit, []

    def full(store: StoredStates, *given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        commit(store, *given)

    with monkeypatch.context() as patched:
        patched.setattr(StoredStates, "commit", full)
        patched.setattr(warehouse._keeper.summaries, "one_by_one", lambda _: True)
        with pytest.raises(Exception, match="No space left"):
            warehouse.catch_up()
    warehouse.catch_up()
    database.execute("INSERT INTO q VALUES (2, 2)")
    warehouse.catch_up()
    assert shown(warehouse) == [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2)]
    assert warehouse.audit("v").clean


def test_versions_of_a_row_are_looked_up_once(
    warehouse: Warehouse, database: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows have one key, and each changes many times: versions are not joined with each other."""
    database.executescript(
        "CREATE TABLE r (id INTEGER PRIMARY KEY, k INTEGER, a INTEGER);"
        "CREATE TABLE q (id INTEGER PRIMARY KEY, k INTEGER, b INTEGER);"
        "INSERT INTO r VALUES (1, 1, 0), (2, 1, 0); INSERT INTO q VALUES (1, 1, 0), (2, 1, 0)"
    )
    create(
        warehouse,
        tmp_path,
        "matview",
        "SELECT r.id, q.id AS q, r.a, q.b FROM s.r r JOIN s.q q ON r.k = q.k",
        "complete",
    )
    for number in range(1, 11):
        database.execute(f"UPDATE r SET a = {number}")
        database.execute(f"UPDATE q SET b = {number}")
    ahead: list[int] = []
    looked_up = following.Following._looked_up

    def counting(one: following.Following, *given: Any) -> Any:
        rows = looked_up(one, *given)
        ahead.append(len(list(rows)))
        return rows

    monkeypatch.setattr(following.Following, "_looked_up", counting)
    warehouse.catch_up()
    assert set(ahead) <= {2}
    assert shown(warehouse) == [(r, q, 10, 10) for r in (1, 2) for q in (1, 2)]
