"""A process whose disk really is full, or that may not write files beyond a size; run by `test_full_disk.py`.

    cramped_writer.py limit ROOT     a limit on the size of files, on a prepared warehouse
    cramped_writer.py disk ROOT      a small file system is mounted at ROOT, in a mount namespace of its own
    cramped_writer.py freed ROOT     the same, and space is freed as the hint says

It checks by itself what must hold, and prints what it was told.
"""

import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from images import image
from lakes import TOTAL_TYPES, make_large_commit, make_small_commit, prepare
from stored_content import Stored

from viewkeeper.errors import StorageFailure
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.loads import Staging
from viewkeeper.warehouse import Warehouse

PAGE = 4096


def limit(root: Path) -> list[tuple[str, str]]:
    """Three who write: the driver, deltalake, and Arrow for the rows on their way to Spark."""
    told = []
    before = image(root)
    with Warehouse.open(root, compaction=None) as wh:

        def create_empty() -> None:
            with wh.commit() as commit:
                commit.create("empty", TOTAL_TYPES, group="shop")

        def stage_rows() -> None:
            Staging(LocalStore(root)).stage(None, table.to_batches(), table.schema)

        table = pa.table({"id": list(range(10_000))})
        for write in (lambda: make_large_commit(wh), create_empty, stage_rows):
            with files_up_to(64):
                told.append(failure_of(write))
            assert image(root) == before
    with Warehouse.open(root, compaction=None) as wh:
        assert Stored(root).leftovers() == set()
        make_large_commit(wh)
    return told


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def disk(mount: Path) -> list[tuple[str, str]]:
    """The disk is filled up to a few pages, one more each time, until the commit fits."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], check=True)
    root, ballast, told = mount / "lake", mount / "ballast", []
    prepare(root)
    with Warehouse.open(root, compaction=None) as wh:
        before = image(root)
        for pages in range(1000):
            fill(ballast, pages)
            try:
                make_large_commit(wh)
            except StorageFailure as error:
                told.append((error.detail, error.hint))
                assert image(root) == before
            else:
                break
            finally:
                ballast.unlink()
        make_small_commit(wh)
        assert Stored(root).leftovers() == set()
        assert image(root).keys() == before.keys() - {"visits"} | {"notes", "counts", "empty"}
    return told


def freed(mount: Path) -> list[tuple[str, str]]:
    """The disk is full but for a few pages: what the hint says makes room for the commit that did not fit."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(mount)], check=True)
    root, ballast = mount / "lake", mount / "ballast"
    prepare(root)
    with Warehouse.open(root, compaction=None) as wh:
        for _ in range(10):
            make_small_commit(wh)
        fill(ballast, 3)
        told = failure_of(lambda: make_large_commit(wh))
        (retention, grace) = re.findall(r"--(?:retention|grace) '([^']+)'", told[1])
        done = wh.vacuum(retention, grace=grace)
        assert done.bytes > 0
        make_small_commit(wh)
    return [told]


def fill(ballast: Path, free: int) -> None:
    """Leave so many pages free."""
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(bytes(PAGE)) == PAGE:
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - free * PAGE))


def failure_of(write: Callable[[], Any]) -> tuple[str, str]:
    try:
        write()
    except StorageFailure as error:
        return error.detail, error.hint
    raise AssertionError("it was written")


if __name__ == "__main__":
    task = {"limit": limit, "disk": disk, "freed": freed}[sys.argv[1]]
    print(json.dumps(task(Path(sys.argv[2]))))
