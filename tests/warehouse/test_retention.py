"""Vacuum: what is past its retention goes, exactly that, and never what a reader has pinned."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from images import copy, image
from lakes import ORDER_TYPES, add_states, make_large_commit, make_small_commit, orders, prepare, totals
from stored_content import HOME, Stored, checksums

from viewkeeper.clock import now
from viewkeeper.errors import StateGone, UsageError
from viewkeeper.lake import commit as commit_module
from viewkeeper.lake import expiring, vacuum, writer
from viewkeeper.lake.compaction import merge_deltas
from viewkeeper.lake.log import pins, store
from viewkeeper.serving.snapshot import Snapshot
from viewkeeper.warehouse import Warehouse
from waiting import LONG, program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Clock:
    """Time as the warehouse sees it, which only moves when it is told to."""

    time: datetime

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **duration: float) -> None:
        self.time += timedelta(**duration)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Starts a second ahead: files that tests write are never younger than it."""
    made = Clock(now() + timedelta(seconds=1))
    for module in (commit_module, pins, vacuum, writer):
        monkeypatch.setattr(module, "now", made)
    return made


def check_kept(root: Path, first: dict[str, int]) -> None:
    """Exactly the files of these commits and later ones are there, and what is told can be read is there in full."""
    stored = Stored(root)
    assert {view: table["kept"] for view, table in stored.last["tables"].items()} == first
    assert stored.leftovers(first) == set()
    assert stored.needed_files(first) <= stored.files
    with Warehouse.open(root, read_only=True) as wh:
        for view in wh.views:
            listed = {state.state: state.rows for state in wh.states(view)}
            assert listed == {state: sum(rows.values()) for state, rows in stored.states(view).items()}


# --- what goes ---


def test_without_retention_only_the_last_state_stays(prepared: Path) -> None:
    root = copy(prepared)
    rows = {view: Stored(root).states(view) for view in Stored(root).views}
    with Warehouse.open(root, compaction=None) as wh:
        done = wh.vacuum(0, grace=0)
        assert done.oldest == {"orders": 2, "people": 2, "returns": 2, "totals": 2, "visits": 2}
        assert done.commits == 3
        assert done.files == 2 + 1  # old rows of totals, and changes before those of the last commit
        assert {status.view: status.oldest for status in wh.status().views} == done.oldest
    check_kept(root, dict.fromkeys(rows, 3))
    for view, states in rows.items():
        assert Stored(root).states(view) == {2: states[2]}


def test_within_the_retention_everything_stays(prepared: Path) -> None:
    root = copy(prepared)
    before = checksums(root)
    with Warehouse.open(root, compaction=None) as wh:
        done = wh.vacuum("1 hour", grace=0)
        assert (done.files, done.bytes, done.commits) == (0, 0, 0)
        assert wh.vacuum(0, grace="1 hour").files == 0
    assert checksums(root) == before


def test_a_commit_stays_while_it_was_the_last_one_within_the_retention(place: Path, clock: Clock) -> None:
    root = place / "hours"
    with Warehouse.open(root, compaction=None) as wh:
        with wh.commit() as commit:
            commit.create("v", ORDER_TYPES, rows=orders((0, "a")))
        for state in range(1, 6):
            clock.forward(hours=1)
            with wh.commit() as commit:
                commit.state("main", {}, {"v": orders((state, "a"))})
        # State 3 (commit 4) was the last one until an hour ago: it could be read 90 minutes ago.
        assert wh.vacuum("90 minutes", grace=0).oldest == {"v": 3}
        assert [state.state for state in wh.states("v")] == [3, 4, 5]
        check_kept(root, {"v": 4})
        with pytest.raises(StateGone) as gone:
            wh.read("v", 2)
        assert "viewkeeper states v" in gone.value.hint
        with pytest.raises(StateGone):
            wh.changes("v", 2)


def test_files_younger_than_the_grace_period_stay(place: Path, clock: Clock) -> None:
    root = place / "grace"
    prepare(root)
    with Warehouse.open(root, compaction=None) as wh:
        clock.forward(minutes=30)
        leftover = root / "views" / "orders" / "somebody-elses.parquet"
        leftover.write_bytes(b"x" * 100)
        assert wh.vacuum(0, grace="1 hour").files == 0
        clock.forward(minutes=31)
        done = wh.vacuum("1 hour", grace="1 hour")
        assert done.bytes >= 100
        assert not leftover.exists()
    check_kept(root, dict.fromkeys(Stored(root).views, 3))


def test_a_dry_run_changes_nothing_and_tells_the_same(prepared: Path) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        make_large_commit(wh)
        before, told = checksums(root), image(root)
        planned = wh.vacuum(0, grace=0, dry_run=True)
        assert checksums(root) == before
        assert image(root) == told
        done = wh.vacuum(0, grace=0)
    assert planned == done
    assert done.files == len(before.keys() - checksums(root).keys() - {HOME}) - _records_and_folders(before, root)


def _records_and_folders(before: dict[str, str], root: Path) -> int:
    """What is gone and is no data file: records, catalogs, folders."""
    gone = before.keys() - checksums(root).keys()
    return sum(not before[name] or name.startswith((f"{HOME}/commits/", f"{HOME}/catalog/")) for name in gone)


def test_a_duration_that_is_none_is_refused(prepared: Path) -> None:
    with Warehouse.open(copy(prepared)) as wh:
        for duration in ("a while", "-1 day", "1 fortnight", -1):
            with pytest.raises(UsageError, match="not a duration"):
                wh.vacuum(duration)


def test_the_delta_log_is_shortened_and_the_table_still_opens(place: Path) -> None:
    root = place / "long"
    prepare(root, commits=25)
    rows = {view: Stored(root).states(view) for view in Stored(root).views}
    logs = {view: root / "views" / view / "_delta_log" for view in ("orders", "totals")}
    with Warehouse.open(root, compaction=None) as wh:
        wh.vacuum(0, grace=0)
        for view, log in logs.items():
            # The oldest version that is needed is 25; the checkpoint before it is that of version 19.
            assert min(path.name for path in log.iterdir()) == f"{19:020d}.checkpoint.parquet", view
        check_kept(root, dict.fromkeys(rows, 26))
        # It goes on from there, and through the next checkpoint.
        for number in range(26, 32):
            with wh.commit() as commit:
                add_states(commit, number)
        wh.vacuum(0, grace=0)
        for view, log in logs.items():
            assert min(path.name for path in log.iterdir()) == f"{29:020d}.checkpoint.parquet", view
    for view in logs:
        assert DeltaTable(str(root / "views" / view)).version() == 31
        table = DeltaTable(str(root / "views" / view), version=30)
        assert table.get_add_actions().num_rows == (31 if view == "orders" else 1)
    # A crash after that is still put right.
    DeltaTable(str(root / "views" / "orders")).delete()
    before = image(root)
    Warehouse.open(root, compaction=None).close()
    assert image(root) == before


# --- views of their own ---


def test_a_view_may_have_its_own_retention(place: Path, clock: Clock) -> None:
    root = place / "own"
    with Warehouse.open(root, compaction=None) as wh:
        with wh.commit() as commit:
            for view, retention in (("long", "30 days"), ("short", "1 minute"), ("usual", None)):
                for layout in ("appended", "rewritten"):
                    commit.create(f"{view}_{layout}", ORDER_TYPES, layout=layout, retention=retention)
        views = wh.views
        for state in range(1, 4):
            clock.forward(days=1)
            with wh.commit() as commit:
                commit.state("main", {}, {view: orders((state, "a")) for view in views})
        clock.forward(hours=1)
        done = wh.vacuum("30 hours", grace=0)
        assert done.kept_longer == {"long_appended": 30 * 86400, "long_rewritten": 30 * 86400}
        oldest = done.oldest
        assert {view: oldest[f"{view}_appended"] for view in ("long", "short", "usual")} == {
            "long": 0,
            "short": 3,
            "usual": 1,
        }
        assert {view: state for view, state in oldest.items() if view.endswith("rewritten")} == {
            view.replace("appended", "rewritten"): state for view, state in oldest.items() if view.endswith("appended")
        }
    first = {"long": 1, "short": 4, "usual": 2}
    check_kept(root, {view: first[view.partition("_")[0]] for view in views})
    assert Stored(root).states("long_rewritten").keys() == {0, 1, 2, 3}


def test_a_dropped_view_goes_when_it_is_past_its_retention(place: Path, clock: Clock) -> None:
    root = place / "dropped"
    prepare(root)
    folders = [root / "views" / "visits", root / "views" / "totals", root / HOME / "changes" / "totals"]
    with Warehouse.open(root, compaction=None) as wh:
        with wh.commit() as commit:
            commit.drop("visits")
            commit.drop("totals")
        clock.forward(hours=1)
        make_a_commit(wh)
        clock.forward(minutes=59)
        wh.vacuum("2 hours", grace=0)
        assert all(any(folder.iterdir()) for folder in folders)
        clock.forward(minutes=1)
        wh.vacuum("2 hours", grace=0)
        assert not any(folder.exists() for folder in folders)
    # The commit of the drop was the last one within the two hours.
    check_kept(root, dict.fromkeys(Stored(root).views, 4))


def make_a_commit(wh: Warehouse) -> None:
    with wh.commit() as commit:
        commit.state("shop", {}, {"orders": orders((1, "more"))})


def test_a_view_in_the_folder_of_a_dropped_one_is_another_view(prepared: Path, spark: "SparkSession") -> None:
    root = copy(prepared)
    with Warehouse.open(root, spark, compaction=None) as wh, Warehouse.open(root, spark, read_only=True) as reader:
        for user in (wh, reader):
            user.status()
            assert user.read("visits").count() == 1
        with wh.commit() as commit:
            commit.drop("visits")
        wh.vacuum(0, grace=0)
        with wh.commit() as commit:
            commit.create("visits", ORDER_TYPES, rows=orders((1, "x"), (2, "y")), group="crm")
        for user in (wh, reader):
            (visits,) = [view for view in user.status().views if view.view == "visits"]
            assert (Path(visits.folder), visits.rows) == (root / "views" / "visits", 2)
            assert user.read("visits").count() == 2
        make_small_commit(wh)


def test_retention_with_a_compaction_in_between(place: Path, clock: Clock, spark: "SparkSession") -> None:
    root = place / "compacted"
    with Warehouse.open(root, spark, compaction=None) as wh:
        with wh.commit() as commit:
            commit.create("long", ORDER_TYPES, rows=orders((0, "a"), (9, "b")), retention="30 days")
            commit.create("usual", ORDER_TYPES, rows=orders((0, "a"), (9, "b")))
        for state in range(1, 6):
            clock.forward(days=1)
            with wh.commit() as commit:
                change = orders((state, "a"), minus=((9, "b"),) if state == 4 else ())
                commit.state("main", {}, {"long": change, "usual": change})
            if state in (2, 4):
                assert wh.compact() == ["long", "usual"]
        before = {view: Stored(root).states(view) for view in wh.views}
        # The base of state 2 is the oldest that the last 60 hours need.
        assert wh.vacuum("60 hours", grace=0).oldest == {"long": 0, "usual": 2}
        after = {view: Stored(root).states(view) for view in wh.views}
        assert after == {"long": before["long"], "usual": {s: before["usual"][s] for s in range(2, 6)}}
        kept = {view: table["kept"] for view, table in Stored(root).last["tables"].items()}
        check_kept(root, kept)
        for view, states in after.items():
            assert [state.state for state in wh.states(view)] == list(states)
            for state in {min(states), 3, 4}:
                assert {tuple(row): row.asDict()["_vk_weight"] for row in wh.read(view, state, weights=True).collect()}
                assert wh.read(view, state).count() == sum(states[state].values())
        assert wh.changes("long", 0).count() == 6
        assert wh.changes("usual", 2).count() == 4
        with pytest.raises(StateGone):
            wh.changes("usual", 1)


# --- pins ---


def test_a_pinned_snapshot_keeps_what_it_needs_until_it_is_closed(prepared: Path, spark: "SparkSession") -> None:
    root = copy(prepared)
    with Warehouse.open(root, spark, compaction=None) as wh:
        snapshot = Warehouse.open(root, spark, read_only=True).snapshot()
        made_later(wh)
        assert wh.vacuum(0, grace=0).oldest["orders"] == 2
        check_pinned(root, snapshot.commit)
        assert snapshot.views == ("orders", "people", "returns", "totals", "visits")
        assert snapshot.vector("visits") == {"crm": f"{2:020d}"}
        assert sorted(map(tuple, snapshot.read("orders").collect())) == [
            (1, "pen"),
            (2, "ink"),
            (11, "pen"),
            (12, "pen"),
        ]
        assert sorted(map(tuple, snapshot.read("totals").collect())) == [("ink", 1), ("pen", 3)]
        assert snapshot.sql("SELECT COUNT(*) FROM visits").first() == (1,)
        # What was past its retention before it was pinned is gone for it, too.
        with pytest.raises(StateGone):
            snapshot.read("totals", 1)
        snapshot.close()
        wh.vacuum(0, grace=0)
        last = Stored(root).last["commit"] - 1
        check_kept(root, dict.fromkeys(wh.views, last))
        assert not (root / "views" / "visits").exists()


def made_later(wh: Warehouse) -> None:
    """More commits, a merge of deltas and a dropped view: all that makes files of earlier commits superfluous."""
    make_large_commit(wh)
    make_small_commit(wh)
    assert merge_deltas(wh._writer, wh._writer.catalog["orders"]) is not None
    make_small_commit(wh)


def check_pinned(root: Path, commit: int) -> None:
    """The files of a commit and of all later ones are there, and no others."""
    stored = Stored(root)
    assert stored.records[0]["commit"] == commit
    first = dict.fromkeys({view for record in stored.records for view in record["tables"]}, commit)
    leftovers = {name for name in stored.leftovers(first) if not name.startswith(f"{HOME}/pins/")}
    assert leftovers == set()
    assert stored.needed_files(first) <= stored.files


PIN_AND_WAIT = """
import sys
from viewkeeper.warehouse import Warehouse
snapshot = Warehouse.open(sys.argv[1], read_only=True).snapshot()
print(snapshot.commit, flush=True)
sys.stdin.read()
"""


@contextmanager
def pinning_process(root: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", PIN_AND_WAIT, str(root)]
    with program(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "3\n"
        yield process
        process.communicate(timeout=LONG)


@pytest.mark.processes
def test_a_pin_holds_while_its_process_lives(prepared: Path) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh, pinning_process(root) as reader:
        made_later(wh)
        wh.vacuum(0, grace=0)
        check_pinned(root, 3)
        assert wh.status().readers == 1
        reader.send_signal(signal.SIGKILL)
        reader.wait(LONG)
        assert any((root / HOME / "pins").iterdir())
        wh.vacuum(0, grace=0)
        check_kept(root, dict.fromkeys(wh.views, Stored(root).last["commit"] - 1))
        assert not any((root / HOME / "pins").iterdir())
        assert wh.status().readers == 0


def test_a_pin_of_another_machine_holds_until_its_lease_is_over(prepared: Path, clock: Clock) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        with wh.snapshot():
            (path,) = (root / HOME / "pins").iterdir()
            theirs = json.dumps({**json.loads(path.read_bytes()), "host": "elsewhere", "pid": 2**22 + 1})
        path.write_text(theirs)
        made_later(wh)
        clock.forward(hours=23)
        wh.vacuum(0, grace=0)
        check_pinned(root, 3)
        clock.forward(hours=2)
        wh.vacuum(0, grace=0)
        check_kept(root, dict.fromkeys(wh.views, Stored(root).last["commit"] - 1))


def test_a_snapshot_that_is_used_renews_its_lease(prepared: Path, clock: Clock, spark: "SparkSession") -> None:
    root = copy(prepared)
    with Warehouse.open(root, spark, compaction=None) as wh, wh.snapshot() as snapshot:
        made_later(wh)
        for _ in range(3):
            clock.forward(hours=20)
            snapshot.read("totals")
            wh.vacuum(0, grace=0)
        check_pinned(root, 3)
        assert snapshot.read("totals").count() == 2


def test_a_pin_that_was_never_finished_goes_after_a_day(prepared: Path, clock: Clock) -> None:
    root = copy(prepared)
    unfinished = root / HOME / "pins" / ".vk-tmp-0123"
    unfinished.parent.mkdir()
    unfinished.write_text('{"commit": 3, "pi')
    with Warehouse.open(root, compaction=None) as wh:
        # Its reader may be about to finish it.
        assert unfinished.exists()
        wh.vacuum(0, grace=0)
        assert unfinished.exists()
        clock.forward(hours=25)
        wh.vacuum(0, grace=0)
        assert not unfinished.exists()


def test_a_reader_can_pin_while_others_let_go_and_a_writer_sweeps(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(prepared)
    with Warehouse.open(root, read_only=True) as reader:
        other = reader.snapshot()
        replace = os.replace

        def open_first(path: Path, mode: str, **how: Any) -> object:
            other.close()
            return open(path, mode, **how)

        def sweep_first(source: Path, target: Path) -> None:
            monkeypatch.undo()
            Warehouse.open(root, compaction=None).close()
            replace(source, target)

        monkeypatch.setattr(store, "open", open_first, raising=False)
        monkeypatch.setattr(os, "replace", sweep_first)
        with reader.snapshot() as snapshot:
            assert snapshot.state("orders") == 2
            assert reader.status().readers == 1


def test_a_snapshot_taken_while_vacuum_passes_is_of_what_it_left(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh, Warehouse.open(root, read_only=True) as reader:

        def vacuum_first(path: Path, mode: str, **how: Any) -> object:
            monkeypatch.undo()
            made_later(wh)
            wh.vacuum(0, grace=0)
            return open(path, mode, **how)

        # It has read the last record, and before its pin is there that is no longer the last.
        monkeypatch.setattr(store, "open", vacuum_first, raising=False)
        with reader.snapshot() as snapshot:
            assert snapshot.commit == Stored(root).last["commit"]
            assert [len(list((root / HOME / "pins").iterdir())), snapshot.state("orders")] == [1, 6]


# --- beside commits ---


def add_an_order(wh: Warehouse, number: int) -> None:
    with wh.commit() as commit:
        commit.state("shop", {"shop": f"{number:020d}"}, {"orders": orders((number, "pen"))})


def vacuum_beside(wh: Warehouse, *, meanwhile: Callable[[], Any], retention: float = 0) -> vacuum.Vacuumed:
    """A vacuum; before each file that it deletes something else is done."""
    assert wh._writer is not None
    return vacuum.vacuum(wh._writer, retention, 0, stopped=lambda: meanwhile() is NotImplemented)


def test_commits_go_on_while_vacuum_deletes(prepared: Path) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        before = wh.status().commit
        numbers = iter(range(100, 200))
        done = vacuum_beside(wh, meanwhile=lambda: add_an_order(wh, next(numbers)))
        made = wh.status().commit - before - 1
        assert made == done.files > 2
        assert [state.state for state in wh.states("orders")] == [*range(2, made + 3)]
        assert wh.arrow("orders").num_rows == 4 + made
        assert wh.arrow("orders", 3).num_rows == 5
    check_kept(root, dict.fromkeys(("orders", "people", "returns", "totals", "visits"), before))


def test_what_a_commit_writes_while_vacuum_lists_stays(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are there before its record is, and of a view that no record knows yet."""
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        with wh.commit() as commit:
            commit.drop("returns")
        real = vacuum._Kept.unneeded_files

        def listed(keep: vacuum._Kept) -> list[tuple[str, int]]:
            with monkeypatch.context() as patch:
                patch.setattr(vacuum._Kept, "unneeded_files", real)
                found: list[tuple[str, int]] = []
                with wh.commit() as commit:
                    commit.create("returns", ORDER_TYPES, rows=orders((5, "cap")), group="shop")
                add_an_order(wh, 50)
                # The files of the new view may be in the folder of the one that was dropped.
                found.extend(keep.unneeded_files())
                return found

        monkeypatch.setattr(vacuum._Kept, "unneeded_files", listed)
        wh.vacuum(0, grace=0)
        monkeypatch.undo()
        assert wh.arrow("returns").to_pylist() == [{"id": 5, "item": "cap"}]
        assert wh.arrow("orders").num_rows == 5
        assert wh.status().problems == ()
    assert image(root)["returns"]["rows"]


def test_a_reader_that_pins_an_earlier_commit_before_vacuum_announces_itself_keeps_it(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh, Warehouse.open(root, read_only=True) as reader:
        files, record = reader._files, reader._files.log.last()
        rows = reader.arrow("totals").num_rows
        add_an_order(wh, 50)
        with wh.commit() as commit:
            commit.state("shop", {}, {"totals": totals(("cap", 1))})
        announce, held = writer.Writer.announce, list[Any]()

        def announce_late(*words: Any) -> Any:
            # It has read the record long ago, and finds nothing announced after it has pinned it.
            held.append(Snapshot(files, record, pins.pin(files.store, record.commit)))
            assert all(table.kept <= record.commit for table in files.log.last().tables.values())
            return announce(*words)

        monkeypatch.setattr(writer.Writer, "announce", announce_late)
        wh.vacuum(0, grace=0)
        (snapshot,) = held
        assert snapshot.arrow("totals").num_rows == rows
        assert snapshot.arrow("orders").num_rows == 4
        snapshot.close()
        monkeypatch.undo()
        assert wh.vacuum(0, grace=0).files > 0


def test_a_vacuum_that_is_stopped_is_finished_by_the_next(prepared: Path) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        assert wh._writer is not None
        whole = wh.vacuum(0, grace=0, dry_run=True).files
        stops = iter([False, True])
        done = vacuum.vacuum(wh._writer, 0, 0, stopped=lambda: next(stops))
        assert done.files == 1 < whole
        last = wh.status().commit
        assert wh.vacuum(0, grace=0).files >= whole - 1
    check_kept(root, dict.fromkeys(("orders", "people", "returns", "totals", "visits"), last))


def test_run_vacuums_beside_its_commits(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copy(prepared)
    monkeypatch.setattr(expiring, "FIRST", 0.0)
    with Warehouse.open(root, compaction=None) as wh:
        assert wh._writer is not None
        vacuums = expiring.Vacuums(wh._writer, 0.0, 0.0)
        vacuums.look()
        assert vacuums._under_way is not None
        assert vacuums._under_way.result().files > 0
        vacuums.look()
        assert vacuums._under_way is None
        vacuums.look()
        assert vacuums._under_way is None
        vacuums.close()
        assert len(wh.states("orders")) == 1


def test_run_goes_on_when_a_vacuum_fails(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(expiring, "FIRST", 0.0)
    monkeypatch.setattr(expiring, "vacuum", lambda *_, **__: [][0])
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        assert wh._writer is not None
        with expiring.expiring(wh._writer, "0 s", "0 s") as look:
            look()
        assert "a vacuum failed and will be tried again" in caplog.text
        make_small_commit(wh)
