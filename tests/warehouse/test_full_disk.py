"""A disk that fills up: the commit fails and says so, the last state stays, and the same writer goes on afterwards."""

import errno
import json
import logging
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from full_disk import FullDisk
from images import copy, image, image_after
from lakes import ORDER_TYPES, make_large_commit, make_small_commit
from stored_content import Stored

from viewkeeper.errors import StorageFailure
from viewkeeper.lake.commit import side_by_side
from viewkeeper.lake.compaction import CompactionPolicy
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_explained(error: StorageFailure, root: Path) -> None:
    """It names a file, and says what to do."""
    assert str(root) in error.detail
    assert os.strerror(errno.ENOSPC) in error.detail
    assert "\n" not in error.detail
    assert "\x1b" not in error.detail
    assert "free some space" in error.hint
    assert "what was committed before is as it was" in error.hint


def count_steps(disk: FullDisk, do: Callable[[], Any]) -> int:
    disk.fill(at=10**9)
    do()
    disk.make_room()
    return len(disk.steps)


def last_link(disk: FullDisk) -> int:
    """The step that makes the record of the last commit."""
    return len(disk.steps) - 1 - disk.steps[::-1].index("os.link")


# For a moment; so full that nothing can be deleted either; and, at fewer steps, something between the two.
@pytest.mark.parametrize(
    ("times", "deleting_fails", "every"),
    [
        (1, False, 5),
        (10**9, True, 9),
        (10**9, False, 9),
        *(pytest.param(*given, 1, marks=pytest.mark.soak) for given in product((1, 10**9), (False, True))),
    ],
)
def test_a_commit_that_finds_the_disk_full_at_any_step_changes_nothing_and_can_be_repeated(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, times: int, deleting_fails: bool, every: int
) -> None:
    disk = FullDisk(monkeypatch, deleting_fails=deleting_fails)
    before, after = image(prepared), image_after(copy(prepared), make_large_commit)
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        count_steps(disk, lambda: make_large_commit(wh))
    # Up to the record, and that its name is on the disk.
    steps = last_link(disk) + 2
    for at in sorted({*range(0, steps, every), *range(steps - 6, steps)}):
        root = copy(prepared)
        with Warehouse.open(root, compaction=None) as wh:
            disk.fill(at, times)
            with pytest.raises(StorageFailure) as failure:
                make_large_commit(wh)
            made = deleting_fails and "was made" in failure.value.detail
            if not made:
                check_explained(failure.value, root)
            # Reading needs no space.
            assert image(root) == (after if made else before), disk.steps[at]
            disk.make_room()
            if made:
                assert disk.steps[at - 1 : at + 1] == ["os.link", "os.fsync"]
                assert "do not repeat" in failure.value.hint
                break
            make_large_commit(wh)
            assert image(root) == after, disk.steps[at]
            assert Stored(root).leftovers() == set(), disk.steps[at]


def test_a_commit_stands_whatever_becomes_of_the_folder_that_a_view_has_left(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def drop(wh: Warehouse) -> None:
        with wh.commit() as commit:
            commit.drop("visits")

    disk = FullDisk(monkeypatch)
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        steps = count_steps(disk, lambda: drop(wh))
    first = last_link(disk) + 2
    assert "os.rename" in disk.steps[first:]
    for at in range(first, steps):
        root = copy(prepared)
        log = root / "views" / "visits" / "_delta_log"
        with Warehouse.open(root, compaction=None) as wh:
            disk.fill(at)
            drop(wh)
            assert "visits" not in wh.views
            assert log.exists(), disk.steps[at]
            # A disk that is still full keeps nobody from opening the warehouse, to vacuum it.
            wh.close()
            Warehouse.open(root, compaction=None).close()
            assert "entries stay in the Delta log of views/visits" in caplog.text
            caplog.clear()
            disk.make_room()
        with Warehouse.open(root, compaction=None):
            assert not log.exists(), disk.steps[at]


def test_a_temporary_file_that_cannot_be_deleted_is_left_to_the_next_opening(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch, deleting_fails=True)
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        steps = count_steps(disk, lambda: make_small_commit(wh))
        assert disk.steps[-1] == "os.unlink"
        disk.fill(steps - 1)
        make_small_commit(wh)
        disk.make_room()
        assert wh.states("orders")[-1].rows == wh.states("orders")[-3].rows + 2
        assert [".vk-tmp-" in name for name in Stored(root).leftovers()] == [True]
    with Warehouse.open(root, compaction=None):
        assert Stored(root).leftovers() == set()


def test_a_vacuum_that_cannot_announce_itself_deletes_nothing(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    before = image(prepared)
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        count_steps(disk, lambda: wh.vacuum(0, grace=0))
    # Up to the record, and that its name is on the disk.
    for at in range(disk.steps.index("os.link") + 2):
        root = copy(prepared)
        with Warehouse.open(root, compaction=None) as wh:
            needed = Stored(root).files
            disk.fill(at)
            with pytest.raises(StorageFailure) as failure:
                wh.vacuum(0, grace=0)
            disk.make_room()
            check_explained(failure.value, root)
            assert image(root) == before, disk.steps[at]
            assert needed <= Stored(root).files, disk.steps[at]
            make_small_commit(wh)
            wh.vacuum(0, grace=0)
        with Warehouse.open(root, compaction=None) as wh:
            assert len(wh.states("orders")) == 1


def test_a_commit_stands_whatever_becomes_of_merging_deltas_after_it(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk(monkeypatch)
    after = image_after(copy(prepared), make_small_commit)
    policy = CompactionPolicy(files=2)
    with Warehouse.open(copy(prepared), compaction=policy) as wh:
        steps = count_steps(disk, lambda: make_small_commit(wh))
    first = disk.steps.index("os.link") + 2
    assert first < steps
    for at in range(first, steps):
        root = copy(prepared)
        with Warehouse.open(root, compaction=policy) as wh, caplog.at_level(logging.ERROR):
            disk.fill(at)
            make_small_commit(wh)
            disk.make_room()
            assert image(root) == after, disk.steps[at]
            assert "a compaction failed and will be tried again" in caplog.text
            caplog.clear()
            make_small_commit(wh)
            assert wh.status().views[0].pending_files == 1
            assert Stored(root).leftovers() == set()


def test_a_warehouse_that_cannot_be_opened_for_want_of_space_can_be_opened_later(
    prepared: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch)
    disk.fill(at=10**9)
    wh = Warehouse.open(place / "made")
    disk.make_room()
    wh.close()
    for at in range(len(disk.steps)):
        disk.fill(at)
        with pytest.raises(StorageFailure) as failure:
            Warehouse.open(place / f"new {at}")
        disk.make_room()
        check_explained(failure.value, place)
        Warehouse.open(place / f"new {at}").close()
        assert Stored(place / f"new {at}").leftovers() == set()
    # One that is there needs no space.
    root = copy(prepared)
    disk.fill(at=0)
    with Warehouse.open(root) as wh:
        assert wh.status().views


# --- for real ---


def test_spark_that_may_not_write_is_told_like_the_others(prepared: Path, spark: "SparkSession") -> None:
    root = copy(prepared)
    jvm = spark.sparkContext._gateway.proc.pid
    _, hard = resource.prlimit(jvm, resource.RLIMIT_FSIZE)
    rows = spark.range(10_000).selectExpr("id", "CAST(id AS STRING) AS item")

    def load(wh: Warehouse, view: str) -> None:
        with wh.commit() as commit:
            commit.create(view, ORDER_TYPES, rows=rows, group="shop", distinct=True)

    with Warehouse.open(root, spark, compaction=None) as wh:
        # A JVM that could not unpack its own libraries would be of no use to later tests.
        load(wh, "earlier")
        before = image(root)
        resource.prlimit(jvm, resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(StorageFailure) as failure:
                load(wh, "loaded")
        finally:
            resource.prlimit(jvm, resource.RLIMIT_FSIZE, (hard, hard))
        assert str(root / "views" / "loaded") in failure.value.detail
        assert "what was committed before is as it was" in failure.value.hint
        assert image(root) == before
        assert Stored(root).leftovers() == set()
        load(wh, "loaded")
        assert image(root)["loaded"]["rows"] == image(root)["earlier"]["rows"]


def run_cramped(*command: str | Path, within: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    script = Path(__file__).with_name("cramped_writer.py")
    done = subprocess.run([*within, sys.executable, script, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [tuple(told) for told in json.loads(done.stdout)]


@pytest.mark.processes
def test_a_limit_on_the_size_of_files_is_told_by_all_who_write(prepared: Path) -> None:
    root = copy(prepared)
    after = image_after(copy(prepared, "after"), make_large_commit)
    told = run_cramped("limit", root)
    assert len(told) == 3
    for detail, hint in told:
        assert str(root) in detail
        assert os.strerror(errno.EFBIG) in detail
        assert "ulimit" in hint
    assert image(root) == after


@pytest.fixture
def mountable(tmp_path: Path) -> tuple[str, ...]:
    """How to run something that may mount a small disk. Some kernels and containers allow that to nobody but the real
    root, and nothing can be installed for it; disks that say that they are full are tested everywhere."""
    namespace = ("unshare", "--user", "--map-root-user", "--mount")
    try:
        subprocess.run([*namespace, "mount", "-t", "tmpfs", "tmpfs", tmp_path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a file system of one's own cannot be mounted here")
    return namespace


@pytest.mark.processes
def test_a_disk_that_is_really_full_at_every_page_of_a_commit(tmp_path: Path, mountable: tuple[str, ...]) -> None:
    told = run_cramped("disk", tmp_path, within=mountable)
    assert len(told) > 5
    for detail, hint in told:
        assert str(tmp_path) in detail
        assert os.strerror(errno.ENOSPC) in detail
        assert "free some space" in hint


@pytest.mark.processes
def test_the_command_of_the_hint_frees_space_on_a_disk_that_is_really_full(
    tmp_path: Path, mountable: tuple[str, ...]
) -> None:
    ((detail, hint),) = run_cramped("freed", tmp_path, within=mountable)
    assert os.strerror(errno.ENOSPC) in detail
    assert "viewkeeper vacuum --retention '0 s' --grace '0 s'" in hint


def test_a_failure_is_raised_when_no_table_is_being_written_any_more() -> None:
    ended = []

    def write(table: int) -> None:
        if table == 0:
            raise OSError(errno.ENOSPC, "full")
        threading.Event().wait(0.2)
        ended.append(table)

    with pytest.raises(OSError, match="full"):
        side_by_side(write, range(4))
    assert sorted(ended) == [1, 2, 3]
