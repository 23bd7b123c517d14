"""What a long commit log costs: files that are read are counted, and do not grow with the number of commits."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from images import copy, image
from lakes import ORDER_TYPES, make_small_commit, orders, prepare
from lakes import place as position
from stored_content import checksums

from viewkeeper.clock import seeded
from viewkeeper.errors import DamagedWarehouse, StateGone
from viewkeeper.lake.log import intents
from viewkeeper.lake.log.commit_log import BETWEEN_CHECKPOINTS, CHECKPOINT, COMMITS, CommitLog, record_name
from viewkeeper.lake.log.intents import INTENTS
from viewkeeper.lake.log.record import Record, encode
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.writer import CLOSED, LOCK
from viewkeeper.warehouse import Warehouse

FEW, MANY = 50, 1600


def lengthen(root: Path, commits: int) -> None:
    """Follow the last commit by others: each a state of `shop`, in which nothing changes."""
    store = LocalStore(root)
    log = CommitLog(store)
    last = log.last()
    folders = {view: f"views/{view}/_delta_log" for view in last.tables}
    for number in range(last.commit + 1, commits + 1):
        last = following(last)
        store.path(record_name(number)).write_bytes(encode(last))
        for view, folder in folders.items():
            entry = store.path(f"{folder}/{last.tables[view].version:020d}.json")
            entry.write_text(json.dumps({"commitInfo": {"viewkeeper.commit": str(number)}}) + "\n")
    for view in folders:
        DeltaTable(str(root / "views" / view)).create_checkpoint()
    log.write_checkpoint(commits)
    with Warehouse.open(root):
        pass


def following(record: Record) -> Record:
    tables = {name: replace(table.untouched(), version=table.version + 1) for name, table in record.tables.items()}
    groups = {name: group.untouched() for name, group in record.groups.items()}
    shop = groups["shop"]
    groups["shop"] = replace(shop, last=shop.last + 1, steps=({},), before=shop.vector)
    return replace(record, commit=record.commit + 1, tables=tables, groups=groups)


@pytest.fixture(scope="module")
def logs(place: Path) -> dict[int, Path]:
    """The same warehouse with a short and with a long log."""
    made = {}
    for commits in (FEW, MANY):
        prepare(made.setdefault(commits, place / f"of {commits}"))
        lengthen(made[commits], commits)
    return made


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """What is asked of the files of a warehouse meanwhile."""
    asked: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        for method in ("read", "exists", "names", "names_below", "files"):
            real = getattr(LocalStore, method)

            def ask(store: LocalStore, name: str, real: Any = real, method: str = method) -> Any:
                asked[method] += 1
                listed = method in ("names", "names_below", "files") and COMMITS.startswith(name)
                asked["listings of the log"] += listed
                return real(store, name)

            patch.setattr(LocalStore, method, ask)
        yield asked


@pytest.mark.parametrize("does", ["reads", "writes", "states", "status", "an early state"])
def test_what_is_asked_of_the_files_does_not_grow_with_the_log(
    does: str, logs: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}
    for commits, root in logs.items():
        with counted(monkeypatch) as asked[commits], Warehouse.open(root, read_only=does != "writes") as wh:
            if does == "states":
                assert [state.state for state in wh.states("orders", 1)] == [commits - 1]
                # Nothing was added to this one for as long as the log is.
                assert [state.state for state in wh.states("people", 1)] == [2]
            elif does == "status":
                assert (wh.status().commit, wh.status().commits) == (commits, commits + 1)
            elif does == "an early state":
                assert wh.arrow("totals", 1).num_rows == 2
            else:
                assert "orders" in wh.views
        assert not asked[commits]["listings of the log"]
    # Bisection: five more steps in each search, for 32 times as many commits.
    most = {"reads": 0, "writes": 0, "status": 12, "states": 30, "an early state": 30}[does]
    assert asked[MANY].total() - asked[FEW].total() <= most
    assert asked[MANY]["names"] == asked[FEW]["names"]


# --- the checkpoint ---


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b'{"commit": 5}', b"[]", b"\xff\xfe", "later", "earlier"],
    ids=["missing", "empty", "cut", "unsealed", "list", "noise", "later", "earlier"],
)
def test_a_checkpoint_that_is_not_right_costs_a_listing_and_no_more(prepared: Path, content: Any) -> None:
    root = copy(prepared)
    wanted = image(root)
    log = CommitLog(LocalStore(root))
    (root / CLOSED).unlink()
    if content in ("later", "earlier"):
        log.write_checkpoint(1000 if content == "later" else 1)
    else:
        (root / CHECKPOINT).unlink()
        if content is not None:
            (root / CHECKPOINT).write_bytes(content)
    assert image(root) == wanted
    with Warehouse.open(root, compaction=None) as wh:
        assert wh.status().commit == log.last().commit
        make_small_commit(wh)
    assert CommitLog(LocalStore(root)).last().commit == log.last().commit == 4


def test_a_warehouse_without_checkpoint_is_opened_and_gets_one(prepared: Path) -> None:
    """As one that an earlier version has written."""
    root = copy(prepared)
    (root / CHECKPOINT).unlink()
    (root / CLOSED).unlink()
    wanted = image(root)
    with Warehouse.open(root, compaction=None):
        pass
    assert image(root) == wanted
    assert (root / CHECKPOINT).exists()


def test_a_writer_leaves_checkpoints_on_its_way(place: Path) -> None:
    root = place / "on its way"
    wh = Warehouse.open(root, compaction=None)
    with wh.commit() as commit:
        commit.create("orders", ORDER_TYPES, group="shop")
    for _ in range(BETWEEN_CHECKPOINTS + 3):
        with wh.commit() as commit:
            commit.state("shop", {}, {})
    # It is killed: nothing is closed.
    log = CommitLog(LocalStore(root))
    assert log._checkpoint() == BETWEEN_CHECKPOINTS
    assert log.last().commit == BETWEEN_CHECKPOINTS + 4
    wh.close()


def test_vacuum_leaves_a_checkpoint_that_is_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(root := place / "vacuumed", commits=8)
    with Warehouse.open(root, compaction=None) as wh:
        wh.vacuum(0, grace=0)
        with counted(monkeypatch) as asked, Warehouse.open(root, read_only=True) as reader:
            assert len(reader.states("orders")) == 1
    assert not asked["listings of the log"]


@pytest.mark.parametrize("missing", [0, 1, 2, 3, 4])
def test_a_record_that_is_missing_is_missed_before_anything_is_swept(place: Path, missing: int) -> None:
    prepare(root := place / f"without {missing}", commits=4)
    (root / CLOSED).unlink()
    (root / record_name(missing)).unlink()
    log = CommitLog(LocalStore(root))
    log.write_checkpoint(max(missing - 1, 0))
    before = checksums(root)
    if missing == 0:
        # As vacuum leaves it.
        Warehouse.open(root, compaction=None).close()
        return
    with pytest.raises(DamagedWarehouse, match=f"{missing:020d}.json is missing"):
        Warehouse.open(root, compaction=None)
    assert checksums(root) == before


# --- what a dead writer has left ---

LEFTOVER = f"views/orders/delta-{99:020d}-{0:032x}.parquet"


def killed(root: Path, *named: str) -> None:
    """As a writer that is killed leaves it, which was about to make these files."""
    wh = Warehouse.open(root, compaction=None)
    wh._files.store.about_to_write(named)
    assert wh._writer is not None
    wh._writer._held.close()


def test_what_a_dead_writer_left_is_swept_and_what_a_closed_one_left_is_not_looked_for(prepared: Path) -> None:
    root = copy(prepared)
    (root / LEFTOVER).touch()
    Warehouse.open(root, compaction=None).close()
    assert (root / LEFTOVER).exists()
    killed(root, LEFTOVER)
    Warehouse.open(root, compaction=None).close()
    assert not (root / LEFTOVER).exists()


def test_what_an_opening_after_a_kill_lists_does_not_grow_with_the_commits(
    logs: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {}
    for commits, root in logs.items():
        for number in range(commits):
            (root / f"views/orders/delta-{number:020d}-{1:032x}.parquet").touch()
        leftover = f"views/orders/delta-{commits + 1:020d}-{0:032x}.parquet"
        (root / leftover).touch()
        killed(root, leftover)
        with entries_listed(root, monkeypatch) as found, Warehouse.open(root, compaction=None):
            assert not (root / leftover).exists()
        assert (root / f"views/orders/delta-{commits - 1:020d}-{1:032x}.parquet").exists()
        assert not found.keys() & {COMMITS, "views/orders", "_viewkeeper/changes/totals"}
        # Commits keep Delta logs short, and these here were made without any.
        listed[commits] = sum(count for folder, count in found.items() if not folder.endswith("/_delta_log"))
    assert listed[MANY] == listed[FEW] < FEW


@contextmanager
def entries_listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How many names the listings of each folder of a warehouse give meanwhile."""
    found: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        for function in ("listdir", "scandir"):
            real, names = getattr(os, function), os.listdir

            def count(path: Any, real: Any = real, names: Any = names) -> Any:
                if Path(path).is_relative_to(root) and os.path.isdir(path):
                    found[Path(path).relative_to(root).as_posix()] += len(names(path))
                return real(path)

            patch.setattr(os, function, count)
        yield found


@pytest.mark.parametrize("because", ["boot", "copy", "writer", "damage", "cut", "earlier version", "lost record"])
def test_a_list_of_intents_that_may_not_be_whole_is_not_relied_upon(
    prepared: Path, because: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(prepared)
    (root / LEFTOVER).touch()
    killed(root)
    listed = (root / INTENTS).read_text()
    assert json.loads(listed)["commit"] == CommitLog(LocalStore(root)).last().commit
    if because == "boot":
        monkeypatch.setattr(intents, "_boot", lambda: "another")
    elif because == "copy":
        root = copy(root, "copy of a copy")
        (root / LOCK).write_bytes((root.with_name("copy") / LOCK).read_bytes())
    elif because == "writer":
        (root / LOCK).write_text(json.dumps({"pid": 1, "host": "elsewhere", "since": "2026-11-18T12:00:00"}))
    elif because == "damage":
        (root / INTENTS).write_text("[]")
    elif because == "cut":
        (root / INTENTS).write_text(f'{listed}"views/or')
    elif because == "earlier version":
        (root / INTENTS).unlink()
    else:
        (root / INTENTS).write_text(f"{listed}{json.dumps(record_name(98))}\n")
    Warehouse.open(root, compaction=None).close()
    assert not (root / LEFTOVER).exists()


def test_a_list_of_intents_begins_again_when_it_is_long(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intents, "MOST_BYTES", 2_000)
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        for number in range(20):
            with wh.commit() as commit:
                commit.state("crm", {"crm": position(10 + number)}, {"people": orders((number, "Eve"))})
            assert (root / INTENTS).stat().st_size < 4_000
        commits = wh.status().commit
    header, *named = map(json.loads, (root / INTENTS).read_text().splitlines())
    assert header["commit"] >= commits - 5
    assert record_name(commits) in named


# --- states ---


@pytest.mark.parametrize("seed", range(8))
def test_the_last_states_are_the_end_of_all_of_them(place: Path, seed: int) -> None:
    """Groups that move at their own pace, views that come later, vacuum in between."""
    chance = seeded(seed)
    root = place / f"random {seed}"
    wanted: dict[str, list[tuple[int, int]]] = {}
    with Warehouse.open(root, compaction=None) as wh:
        for view in ("a", "b", "c"):
            with wh.commit() as commit:
                commit.create(view, ORDER_TYPES, rows=orders((0, view)), group="shop" if view < "c" else "crm")
        wanted = {view: [(state.state, state.rows) for state in wh.states(view)] for view in wh.views}
        assert wanted == {view: [(0, 1)] for view in "abc"}
        for step in range(1, 40):
            group = chance.choice(["shop", "shop", "crm"])
            with wh.commit() as commit:
                for _ in range(chance.randrange(3)):
                    views = [view for view in wanted if (view == "c") == (group == "crm")]
                    changed = {view: chance.randrange(3) for view in views}
                    rows = {view: orders(*[(step, view)] * count) for view, count in changed.items() if count}
                    number = commit.state(group, {group: position(step)}, rows)
                    for view, count in changed.items():
                        wanted[view].append((number, wanted[view][-1][1] + count))
            if chance.random() < 0.05:
                wh.vacuum(0, grace=0)
                for view, states in wanted.items():
                    oldest = wh._latest().record.tables[view].oldest
                    wanted[view] = [state for state in states if state[0] >= oldest]
            if chance.random() < 0.05 and "d" not in wanted:
                with wh.commit() as commit:
                    commit.create("d", ORDER_TYPES, rows=orders((0, "d")), group="shop")
                wanted["d"] = [(wanted["a"][-1][0], 1)]
            for view, states in wanted.items():
                assert [(state.state, state.rows) for state in wh.states(view)] == states, f"seed {seed}, step {step}"
                for last in (1, 3, 100):
                    assert wh.states(view, last) == wh.states(view)[-last:]


def test_a_state_that_was_vacuumed_is_gone(place: Path) -> None:
    prepare(root := place / "gone", commits=6)
    with Warehouse.open(root, compaction=None) as wh:
        wh.vacuum(0, grace=0)
        with pytest.raises(StateGone):
            wh.arrow("totals", 2)
