"""Symbolic links below a warehouse are not followed: they may lead into another one, or anywhere."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from lakes import orders, place, prepare

from viewkeeper.errors import DamagedWarehouse
from viewkeeper.warehouse import Warehouse


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def mine(prepared: Path, tmp_path: Path) -> Path:
    """As a crash leaves it: whoever opens it next sweeps what no record knows."""
    shutil.copytree(prepared, tmp_path / "mine")
    (tmp_path / "mine" / "_viewkeeper" / "closed.json").unlink(missing_ok=True)
    return tmp_path / "mine"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another warehouse, further on: its files look like leftovers of commits that never were."""
    prepare(tmp_path / "other", commits=9)
    return tmp_path / "other"


def folder_of(root: Path, view: str) -> Path:
    return root / "views" / view


def link_of_folder(mine: Path, other: Path) -> Path:
    (mine / "views" / "zz").symlink_to(other / "views" / "orders", target_is_directory=True)
    return mine / "views" / "zz"


def link_of_views(mine: Path, other: Path) -> Path:
    shutil.rmtree(mine / "views")
    (mine / "views").symlink_to(other / "views", target_is_directory=True)
    return mine / "views"


def link_of_home(mine: Path, other: Path) -> Path:
    shutil.rmtree(mine / "_viewkeeper" / "changes", ignore_errors=True)
    (mine / "_viewkeeper" / "changes").symlink_to(other / "_viewkeeper" / "changes", target_is_directory=True)
    return mine / "_viewkeeper" / "changes"


def link_of_staging(mine: Path, other: Path) -> Path:
    (mine / "_viewkeeper" / "staging").symlink_to(other, target_is_directory=True)
    return mine / "_viewkeeper" / "staging"


def link_of_log(mine: Path, other: Path) -> Path:
    log = folder_of(mine, "orders") / "_delta_log"
    shutil.rmtree(log)
    log.symlink_to(folder_of(other, "orders") / "_delta_log", target_is_directory=True)
    return log


def link_of_log_entry(mine: Path, other: Path) -> Path:
    entry = folder_of(mine, "orders") / "_delta_log" / f"{0:020d}.json"
    entry.unlink()
    entry.symlink_to(folder_of(other, "orders") / "_delta_log" / entry.name)
    return entry


def link_of_data_file(mine: Path, other: Path) -> Path:
    theirs = next(folder_of(other, "orders").rglob("*.parquet"))
    ours = next(folder_of(mine, "orders").rglob("*.parquet"))
    ours.unlink()
    ours.symlink_to(theirs)
    return ours


def link_of_record(mine: Path, other: Path) -> Path:
    record = sorted((mine / "_viewkeeper" / "commits").iterdir())[-1]
    record.unlink()
    record.symlink_to(other / "_viewkeeper" / "commits" / record.name)
    return record


LINKS = [
    link_of_folder,
    link_of_views,
    link_of_home,
    link_of_staging,
    link_of_log,
    link_of_log_entry,
    link_of_data_file,
    link_of_record,
]
Make = Callable[[Path, Path], Path]


@pytest.mark.parametrize("make", LINKS)
def test_a_writer_follows_no_link(mine: Path, other: Path, make: Make) -> None:
    link = make(mine, other)
    theirs = content(other)
    with pytest.raises(DamagedWarehouse, match="is a symbolic link") as refused, Warehouse.open(mine) as wh:
        wh.vacuum("0 seconds", grace="0 seconds")
    assert str(link) in str(refused.value)
    assert content(other) == theirs
    assert link.is_symlink()


@pytest.mark.parametrize("make", [link_of_views, link_of_log, link_of_log_entry, link_of_data_file, link_of_record])
def test_a_reader_follows_no_link(mine: Path, other: Path, make: Make) -> None:
    make(mine, other)
    with (
        Warehouse.open(mine, read_only=True) as wh,
        pytest.raises(DamagedWarehouse, match="is a symbolic link"),
    ):
        wh.arrow("orders")


def test_the_folder_itself_may_be_a_link(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(mine, target_is_directory=True)
    with Warehouse.open(tmp_path / "link") as wh:
        with wh.commit() as commit:
            commit.state("shop", {"shop": place(9)}, {"orders": orders((99, "cup"))})
        assert {"id": 99, "item": "cup"} in wh.arrow("orders").to_pylist()
        wh.vacuum("0 seconds", grace="0 seconds")


def test_a_file_named_outside_of_the_warehouse(mine: Path, other: Path) -> None:
    """A Delta log may name any path."""
    theirs = next(folder_of(other, "orders").rglob("*.parquet"))
    named = os.path.relpath(theirs, folder_of(mine, "orders"))
    log = folder_of(mine, "orders") / "_delta_log"
    ours = next(folder_of(mine, "orders").glob("base-*.parquet")).name
    for entry in log.glob("*.json"):
        entry.write_text(entry.read_text().replace(ours, named))
    with (
        Warehouse.open(mine, read_only=True) as wh,
        pytest.raises(DamagedWarehouse, match="names a file outside of itself"),
    ):
        wh.arrow("orders")
