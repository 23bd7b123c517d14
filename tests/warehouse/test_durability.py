"""What a record names is on the disk before the record is: content, names, and the folders on the way."""

import os
from pathlib import Path

import pytest
from images import copy
from lakes import make_large_commit, make_small_commit, prepare

from viewkeeper.lake.compaction import CompactionPolicy
from viewkeeper.warehouse import Warehouse


class Syncs:
    """Notes what has been synced; looks, whenever a record is linked, whether that is everything that is new."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        self.root, self.records = root, 0
        self.old = set(root.rglob("*"))
        self.contents = {path.stat().st_ino for path in self.old}
        """files by inode: they are written under another name, and may be moved"""
        self.names: set[Path] = set()
        self._fsync, self._link = os.fsync, os.link
        patch.setattr(os, "fsync", self.fsync)
        patch.setattr(os, "link", self.link)

    def fsync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self.names |= set(path.iterdir())
        else:
            self.contents.add(os.fstat(descriptor).st_ino)
        self._fsync(descriptor)

    def link(self, source: Path, target: Path) -> None:
        if target.parent.name == "commits":
            new = {path for path in self.root.rglob("*") if ".vk-tmp-" not in path.name} - self.old
            # The lock is recreated by every writer.
            new = {path for path in new if path.name != "writer.lock"}
            assert new
            assert new - self.names == set()
            assert {path for path in new if path.is_file() and path.stat().st_ino not in self.contents} == set()
            assert source.stat().st_ino in self.contents
            self.records += 1
        self._link(source, target)


@pytest.mark.parametrize("commits", [2, 8])  # the version after 8 has a checkpoint
def test_a_commit_is_on_the_disk_before_its_record(place: Path, monkeypatch: pytest.MonkeyPatch, commits: int) -> None:
    prepare(root := place / f"after {commits}", commits)
    with Warehouse.open(root, compaction=CompactionPolicy(files=commits + 2)) as wh:
        syncs = Syncs(monkeypatch, root)
        make_large_commit(wh)
        # The next one is followed by a merge of deltas.
        make_small_commit(wh)
        assert syncs.records == 3


def test_a_recovery_is_on_the_disk_before_its_record(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copy(prepared)
    with Warehouse.open(root, compaction=None) as wh:
        syncs = Syncs(monkeypatch, root)
        fails = pytest.MonkeyPatch()
        fails.setattr(os, "link", _failing)
        with pytest.raises(ValueError, match="no record"):
            make_large_commit(wh)
        fails.undo()
        make_small_commit(wh)
        assert syncs.records == 2


def _failing(source: Path, target: Path) -> None:
    raise ValueError("no record")


def test_a_new_warehouse_is_on_the_disk_before_its_first_record(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = place / "deep" / "down" / "lake"
    syncs = Syncs(monkeypatch, root)
    Warehouse.open(root).close()
    assert syncs.records == 1
    assert {root, root.parent, root.parent.parent} <= syncs.names
