"""A summary that starts small and grows: its changes are appended from then on, and every state stays readable."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from crash_orders import SOME_OR_EVERY, crasher, records_made, where_to_kill
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from full_disk import FullDisk
from images import copy, image, image_after
from lakes import make_growing_commit, make_small_commit
from stored_content import Stored

from viewkeeper.errors import StateGone, StorageFailure
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.views.arrow_changes import changes_of, read_changed
from viewkeeper.maintenance.summaries import creating
from viewkeeper.maintenance.summaries import lattices as keeping
from viewkeeper.serving.snapshot import Snapshot
from viewkeeper.warehouse import Warehouse

STEPS = 8
OF_SOURCES = ("_viewkeeper/sources/", "_viewkeeper/workspaces/")


class Shops:
    """A summary of orders by shop, with a state for each batch of orders."""

    def __init__(self, folder: Path) -> None:
        self.database, self.root = folder / "orders.db", folder / "lake"
        self.orders: list[int] = []
        self.expected: list[Counter[tuple[int, int]]] = []
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, shop INTEGER)")

    def order(self, *shops: int) -> None:
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.executemany("INSERT INTO orders (shop) VALUES (?)", [(shop,) for shop in shops])
        self.orders += shops
        self.expected.append(Counter(Counter(self.orders).items()))

    def create(self, warehouse: Warehouse) -> None:
        warehouse.add_source("s", f"sqlite:///{self.database}", install=True)
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW by_shop AS SELECT shop, COUNT(*) AS n FROM s.orders GROUP BY shop"
        )

    def check(self, warehouse: Warehouse, first: int = 0) -> None:
        """Every state, and what changed between any two."""
        states = [state.state for state in warehouse.states("by_shop")]
        assert len(states) == len(self.expected) - first
        rows = {}
        for state, expected in zip(states, self.expected[first:], strict=True):
            rows[state] = bag(warehouse, state)
            assert rows[state] == expected
        snapshot = warehouse.snapshot()
        for since in states:
            changed = Counter(rows[since])
            for row in changes(snapshot, since):
                changed[row["shop"], row["n"]] += row["_vk_weight"]
            assert {row: n for row, n in changed.items() if n} == rows[states[-1]]
        snapshot.close()


def bag(warehouse: Warehouse, state: int | None = None) -> Counter[tuple[int, int]]:
    return Counter((row["shop"], row["n"]) for row in warehouse.arrow("by_shop", state).to_pylist())


def changes(snapshot: Snapshot, since: int) -> list[dict[str, int]]:
    last = snapshot.record.groups[snapshot.catalog["by_shop"].group].last
    part = changes_of(snapshot, "by_shop", since, last)
    return read_changed(snapshot.files.store, part).table.to_pylist()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than twenty rows are many."""
    for module in (creating, keeping):
        monkeypatch.setattr(module, "MOST_REWRITTEN", 20)


@pytest.fixture
def grown(tmp_path: Path, few: None) -> Shops:
    """One that began with 5 shops and has 40 after seven more states."""
    shops = Shops(tmp_path)
    shops.order(*range(5))
    with Warehouse.open(shops.root) as warehouse:
        shops.create(warehouse)
        for step in range(1, STEPS):
            shops.order(*range(5 * (step + 1)))
            warehouse.catch_up()
    return shops


def last_record(warehouse: Warehouse) -> Record:
    with warehouse.snapshot() as snapshot:
        return snapshot.record


def test_all_states_are_read_as_before(grown: Shops) -> None:
    with Warehouse.open(grown.root) as warehouse:
        (status,) = warehouse.status().views
        assert status.layout == "appended"
        grown.check(warehouse)
        assert not warehouse.audit_files().wrong
    with Warehouse.open(grown.root, read_only=True) as warehouse:
        grown.check(warehouse)


def test_a_refresh_of_it_writes_the_rows_that_change(grown: Shops) -> None:
    with Warehouse.open(grown.root) as warehouse:
        for shop in (3, 99):
            grown.order(shop)
            warehouse.catch_up()
            (name,) = last_record(warehouse).tables["by_shop"].added
            assert parquet.read_metadata(warehouse.path_of("by_shop") / name).num_rows <= 2
        grown.check(warehouse)


def test_readers_do_not_notice(tmp_path: Path, few: None) -> None:
    shops = Shops(tmp_path)
    shops.order(*range(25))
    with Warehouse.open(shops.root) as warehouse, pytest.MonkeyPatch.context() as patch:
        patch.setattr(creating, "MOST_REWRITTEN", 100)
        shops.create(warehouse)
        old, reader = warehouse.path_of("by_shop"), warehouse.snapshot()
        shops.order(*range(30))
        warehouse.catch_up()
        new = warehouse.path_of("by_shop")
        assert new != old
        # Another Delta reader does not go on with old rows.
        with pytest.raises(TableNotFoundError):
            DeltaTable(str(old))
        assert Counter((r["shop"], r["n"]) for r in reader.arrow("by_shop").to_pylist()) == shops.expected[0]
        shops.check(warehouse)
        assert warehouse.states("by_shop")[-1].rows == 30
        # What it has pinned stays, and so do the files of the folder that the view has left.
        warehouse.vacuum(0, grace=0)
        assert Counter((r["shop"], r["n"]) for r in reader.arrow("by_shop").to_pylist()) == shops.expected[0]
        shops.check(warehouse)
        reader.close()
        warehouse.vacuum(0, grace=0)
        shops.check(warehouse, first=1)
        assert not old.exists()


def test_spark_reads_the_states_and_the_changes_before_it(grown: Shops) -> None:
    with Warehouse.open(grown.root, read_only=True) as warehouse:
        states = [state.state for state in warehouse.states("by_shop")]
        assert Counter(tuple(row) for row in warehouse.read("by_shop", states[2]).collect()) == grown.expected[2]
        changed = Counter(grown.expected[1])
        for row in warehouse.changes("by_shop", states[1]).collect():
            changed[row["shop"], row["n"]] += row["_vk_weight"]
        assert {row: n for row, n in changed.items() if n} == grown.expected[-1]


def test_vacuum_keeps_what_is_retained_and_takes_the_rest(grown: Shops) -> None:
    with Warehouse.open(grown.root) as warehouse:
        warehouse.vacuum("30 days", grace=0)
        grown.check(warehouse)
        warehouse.vacuum(0, grace=0)
        grown.check(warehouse, first=STEPS - 1)
        with pytest.raises(StateGone):
            bag(warehouse, 0)
        assert [path.name for path in (grown.root / "views").glob("by_shop*")] == [warehouse.path_of("by_shop").name]
        assert not [name for name in Stored(grown.root).leftovers() if not name.startswith(OF_SOURCES)]
        grown.order(1)
        warehouse.catch_up()
        grown.check(warehouse, first=STEPS - 1)


# --- a commit that does it ---


@pytest.mark.parametrize("every", SOME_OR_EVERY)
def test_killed_at_any_step_it_is_rewritten_or_appended(prepared: Path, every: bool) -> None:
    before, after = image(prepared), image_after(copy(prepared), make_growing_commit)
    assert after["totals"]["rows"].keys() > before["totals"]["rows"].keys()
    with crasher() as writer:
        steps = writer.steps("growing_commit", copy(prepared))
        (record,) = records_made(steps)
        for at in where_to_kill(steps, every=every):
            writer.kill("growing_commit", root := copy(prepared), at)
            with Warehouse.open(root, compaction=None) as wh:
                assert image(root) == (after if at > record else before), steps[at]
                assert Stored(root).leftovers() == set(), steps[at]
                make_small_commit(wh)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.soak)])
def test_on_a_full_disk_it_stays_rewritten(prepared: Path, monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    before, after = image(prepared), image_after(copy(prepared), make_growing_commit)
    disk = FullDisk(monkeypatch)
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        disk.fill(10**9)
        make_growing_commit(wh)
        disk.make_room()
    steps = len(disk.steps) + 1 - disk.steps[::-1].index("os.link")
    for at in sorted({*range(0, steps, every), *range(steps - 3, steps)}):
        with Warehouse.open(root := copy(prepared), compaction=None) as wh:
            disk.fill(at, 1)
            with pytest.raises(StorageFailure):
                make_growing_commit(wh)
            disk.make_room()
            assert image(root) == before, disk.steps[at]
            make_growing_commit(wh)
            assert image(root) == after, disk.steps[at]
            assert Stored(root).leftovers() == set(), disk.steps[at]
