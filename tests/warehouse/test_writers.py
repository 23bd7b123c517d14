"""One writer at a time: others are refused, a dead one does not block, and one that was replaced changes nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from images import copy, image, image_after
from lakes import ORDER_TYPES, make_large_commit, make_small_commit, orders
from stored_content import Stored, checksums

from viewkeeper.errors import UsageError, ViewkeeperError, WriterPresent
from viewkeeper.lake import compaction
from viewkeeper.lake.compaction import CompactionPolicy, compact
from viewkeeper.lake.log.commit_log import record_name
from viewkeeper.lake.log.record import decode, encode
from viewkeeper.lake.tables.staged import WrittenBase
from viewkeeper.warehouse import Warehouse
from waiting import LONG, program

# --- the lock ---

HOLD = """
import sys
from viewkeeper.warehouse import Warehouse
with Warehouse.open(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_writer(root: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", HOLD, str(root)]
    with program(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.communicate(timeout=LONG)


def check_refused(root: Path, pid: int) -> None:
    before = checksums(root)
    with pytest.raises(WriterPresent) as refused:
        Warehouse.open(root)
    assert str(root) in refused.value.detail
    assert f"process {pid} " in refused.value.detail
    assert "read_only=True" in refused.value.hint
    assert checksums(root) == before


def test_a_second_writer_of_the_same_process_is_refused(prepared: Path) -> None:
    root = copy(prepared)
    with Warehouse.open(root) as wh:
        check_refused(root, os.getpid())
        # Being asked twice, the lock still tells who has it.
        check_refused(root, os.getpid())
        make_small_commit(wh)
    Warehouse.open(root).close()


@pytest.mark.processes
def test_a_second_writer_of_another_process_is_refused_until_the_first_one_ends(prepared: Path) -> None:
    root = copy(prepared)
    with another_writer(root) as first:
        check_refused(root, first.pid)
    with Warehouse.open(root) as wh:
        make_small_commit(wh)


@pytest.mark.processes
def test_a_killed_writer_does_not_block_the_next_one(prepared: Path) -> None:
    root = copy(prepared)
    with another_writer(root) as first:
        first.send_signal(signal.SIGKILL)
        first.wait(LONG)
        with Warehouse.open(root) as wh:
            make_small_commit(wh)


def test_an_opening_that_failed_does_not_keep_the_lock(prepared: Path) -> None:
    root = copy(prepared)
    log = root / "views/orders/_delta_log"
    log.rename(root / "away")
    with pytest.raises(ViewkeeperError):
        Warehouse.open(root)
    (root / "away").rename(log)
    Warehouse.open(root).close()


def test_a_closed_warehouse_is_not_written_to(prepared: Path) -> None:
    root = copy(prepared)
    wh = Warehouse.open(root)
    wh.close()
    before = checksums(root)
    for write in WRITES:
        with pytest.raises(UsageError, match="closed"):
            write(wh)
    assert checksums(root) == before
    wh.close()


# --- readers ---

WRITES: tuple[Callable[[Warehouse], Any], ...] = (
    make_small_commit,
    lambda wh: wh.compact(),
    lambda wh: wh.vacuum(0, grace=0),
    lambda wh: wh.vacuum(0, grace=0, dry_run=True),
)


def test_a_reader_opens_beside_a_writer_and_sees_its_commits(prepared: Path) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh, Warehouse.open(root, read_only=True) as reader:
        with reader.snapshot() as still:
            make_large_commit(wh)
            assert reader.views == wh.views != still.views
            assert reader.states("orders") == wh.states("orders")
            assert reader.status() == wh.status()
            assert still.states("orders") == wh.states("orders")[:-2]
        # More than one at once: the reader looks for the newest.
        for _ in range(20):
            make_small_commit(wh)
        assert reader.status().commit == wh.status().commit


def test_a_reader_writes_nothing(prepared: Path) -> None:
    root = copy(prepared)
    before = checksums(root)
    with Warehouse.open(root, read_only=True) as reader:
        for write in WRITES:
            with pytest.raises(UsageError, match="read_only"):
                write(reader)
        with reader.snapshot() as snapshot:
            assert snapshot.vector("people") == {"crm": f"{2:020d}"}
        reader.status()
    assert {name: sum for name, sum in checksums(root).items() if name != "_viewkeeper/pins"} == before


# --- a writer that was taken for dead ---


def make_record_behind_its_back(root: Path) -> None:
    """What a writer on another machine does that does not see the lock."""
    last = Stored(root).last["commit"]
    record = decode((root / record_name(last)).read_bytes())
    groups = {name: group.untouched() for name, group in record.groups.items()}
    other = replace(record, commit=last + 1, writer="another", groups=groups)
    (root / record_name(last + 1)).write_bytes(encode(other))


def test_a_writer_that_was_replaced_changes_nothing(prepared: Path) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        make_record_behind_its_back(root)
        before = checksums(root)
        for write in (*WRITES, *WRITES):
            with pytest.raises(WriterPresent) as lost:
                write(wh)
            assert str(root) in lost.value.detail
            assert "open the warehouse again" in lost.value.hint
        assert checksums(root) == before
        # It still reads.
        assert wh.status().commit == Stored(root).last["commit"]
    assert image_after(root, make_large_commit) == image_after(copy(prepared), make_large_commit)


def test_a_writer_that_is_replaced_while_it_collects_a_commit_changes_nothing(prepared: Path) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        commit = wh.commit()
        commit.__enter__()
        commit.create("late", ORDER_TYPES, rows=orders((1, "x")), group="shop")
        make_record_behind_its_back(root)
        before = checksums(root)
        with pytest.raises(WriterPresent):
            commit.__exit__(None, None, None)
        assert checksums(root) == before


def test_a_writer_that_is_replaced_at_the_last_moment_leaves_the_other_record(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, link = copy(prepared), os.link

    def overtaken(source: Path, target: Path) -> None:
        make_record_behind_its_back(root)
        link(source, target)

    with Warehouse.open(root, compaction=None) as wh:
        monkeypatch.setattr(os, "link", overtaken)
        with pytest.raises(WriterPresent):
            make_large_commit(wh)
        monkeypatch.undo()
        assert Stored(root).last["writer"] == "another"
        with pytest.raises(WriterPresent):
            make_large_commit(wh)
    # What it had already done to the tables is undone by the next one.
    with Warehouse.open(root, compaction=None) as wh:
        assert image(root) == image(prepared)
        # Its files have the number of the other's commit, and go with that.
        make_large_commit(wh)
        wh.vacuum(0, grace=0)
        stored = Stored(root)
        left = stored.leftovers({view: table["kept"] for view, table in stored.last["tables"].items()})
        assert [name for name in left if not name.startswith("_viewkeeper/catalog/")] == []


def test_a_catalog_of_another_writer_is_left_alone(prepared: Path) -> None:
    root = copy(prepared)
    theirs = root / "_viewkeeper" / "catalog" / f"{Stored(root).last['commit'] + 1:020d}.json"
    with Warehouse.open(root, compaction=None) as wh:
        theirs.write_text("theirs")
        commit = wh.commit()
        commit.__enter__()
        commit.drop("visits")
        with pytest.raises(WriterPresent):
            commit.__exit__(None, None, None)


# --- somebody else who writes to a table ---


def append_rows(table: Path) -> None:
    write_deltalake(table, DeltaTable(str(table)).to_pyarrow_dataset().head(1), mode="append")


def overwrite_rows(table: Path) -> None:
    write_deltalake(table, DeltaTable(str(table)).to_pyarrow_dataset().head(1), mode="overwrite")


def delete_rows(table: Path) -> None:
    DeltaTable(str(table)).delete()


def rewrite_files(table: Path) -> None:
    DeltaTable(str(table)).optimize.compact()


def change_properties(table: Path) -> None:
    DeltaTable(str(table)).alter.set_table_properties({"delta.appendOnly": "false"})


def newest_rows(table: Path) -> list[dict[str, Any]]:
    """What any Delta reader sees."""
    files = pa.table(DeltaTable(str(table)).get_add_actions())["path"].to_pylist()
    return [row for name in sorted(files) for row in pa.parquet.read_table(table / name).to_pylist()]


@pytest.mark.parametrize("meddle", [append_rows, overwrite_rows, delete_rows, rewrite_files, change_properties])
@pytest.mark.parametrize("view", ["orders", "totals"])
def test_what_somebody_else_did_to_a_table_is_undone_by_the_next_writer(
    prepared: Path, meddle: Callable[[Path], None], view: str
) -> None:
    root = copy(prepared)
    before, rows = image(root), newest_rows(root / "views" / view)
    meddle(root / "views" / view)
    # Readers follow the record.
    assert image(root) == before
    with Warehouse.open(root, compaction=None) as wh:
        assert image(root) == before
        assert newest_rows(root / "views" / view) == rows
        make_large_commit(wh)
    assert image(root) == image_after(copy(prepared, "other"), make_large_commit)


def test_what_somebody_else_does_to_a_table_meanwhile_is_told_and_undone(prepared: Path) -> None:
    root = copy(prepared)
    before = image(root)
    with Warehouse.open(root, compaction=None) as wh:
        append_rows(root / "views" / "orders")
        with pytest.raises(WriterPresent) as told:
            make_large_commit(wh)
        assert str(root / "views" / "orders") in told.value.detail
        assert "leave writing to viewkeeper" in told.value.hint
        assert image(root) == before
        make_large_commit(wh)
        assert image(root) == image_after(copy(prepared, "other"), make_large_commit)


# --- compaction beside commits ---


def test_a_compaction_gives_way_to_whatever_else_happens_to_its_view(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(wh: Warehouse) -> None:
        with wh.commit() as commit:
            commit.drop("orders")

    def drop_and_create(wh: Warehouse) -> None:
        with wh.commit() as commit:
            commit.drop("orders")
            commit.create("orders", ORDER_TYPES, rows=orders((5, "new")), group="shop")

    def merge(wh: Warehouse) -> None:
        with wh.commit() as commit:
            commit.state("shop", {}, {"orders": orders((6, "new"))})

    for meanwhile in (drop, drop_and_create, merge):
        root = copy(prepared)
        with Warehouse.open(root, compaction=CompactionPolicy(files=3)) as wh:

            def write_no_base(*_: Any, wh: Warehouse = wh, do: Any = meanwhile, **__: Any) -> WrittenBase:
                do(wh)
                return WrittenBase([], hashed=False, smallest=0)

            monkeypatch.setattr(compaction, "_new_base", write_no_base)
            assert compact(wh._writer, wh._writer.catalog["orders"]) is None
        found, wanted = image(root), image_after(copy(prepared, "other"), meanwhile)
        assert {view: told["rows"] for view, told in found.items()} == {
            view: told["rows"] for view, told in wanted.items()
        }
        assert Stored(root).leftovers() == set()
