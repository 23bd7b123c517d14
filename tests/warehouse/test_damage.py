"""Folders that are no warehouse, and warehouses with something missing or spoilt: told by name, nothing is touched."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from images import copy, image
from lakes import make_small_commit, orders, prepare, totals
from stored_content import HOME, Stored, checksums

from viewkeeper.errors import (
    DamagedWarehouse,
    FormatTooNew,
    NotAWarehouse,
    StorageFailure,
    UsageError,
    ViewkeeperError,
    WarehouseError,
)
from viewkeeper.lake.compaction import CompactionPolicy, merge_deltas
from viewkeeper.lake.log.record import seal
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_refused(do: Callable[[], Any], folder: Path, kind: type[ViewkeeperError], named: Path) -> ViewkeeperError:
    """It fails with such an error, which names the file and says what to do; nothing in the folder has changed."""
    before = checksums(folder)
    with pytest.raises(kind) as refused:
        do()
    assert type(refused.value) is kind
    assert str(named) in refused.value.detail
    assert refused.value.hint
    assert checksums(folder) == before
    return refused.value


# --- no warehouse ---


@pytest.mark.parametrize("options", [{}, {"create": False}, {"read_only": True}])
def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path, options: dict[str, bool]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    check_refused(lambda: Warehouse.open(tmp_path, **options), tmp_path, NotAWarehouse, tmp_path)
    (tmp_path / "notes.txt").unlink()
    # Not even ours, without the file that says so.
    (tmp_path / HOME / "commits").mkdir(parents=True)
    check_refused(lambda: Warehouse.open(tmp_path, **options), tmp_path, NotAWarehouse, tmp_path)


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_a_warehouse_is_not_made_unless_it_may_be(tmp_path: Path, options: dict[str, bool]) -> None:
    check_refused(lambda: Warehouse.open(tmp_path, **options), tmp_path, NotAWarehouse, tmp_path)
    absent = tmp_path / "absent"
    check_refused(lambda: Warehouse.open(absent, **options), tmp_path, NotAWarehouse, absent)


@pytest.mark.parametrize("options", [{}, {"create": False}, {"read_only": True}])
def test_a_file_is_no_warehouse(tmp_path: Path, options: dict[str, bool]) -> None:
    file = tmp_path / "lake"
    file.write_text("mine")
    check_refused(lambda: Warehouse.open(file, **options), tmp_path, NotAWarehouse, file)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    below = tmp_path / "file" / "lake"
    check_refused(lambda: Warehouse.open(below), tmp_path, StorageFailure, below)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    check_refused(lambda: Warehouse.open(tmp_path / "link"), tmp_path, NotAWarehouse, tmp_path / "link")


@pytest.mark.parametrize("path", ["50% off", "a%20b", "back\\slash", "two\nlines", "[a]:b"])
def test_a_path_that_others_would_take_for_something_else_is_refused(tmp_path: Path, path: str) -> None:
    check_refused(lambda: Warehouse.open(tmp_path / path), tmp_path, UsageError, tmp_path / path)


def test_a_bucket_is_refused() -> None:
    with pytest.raises(UsageError, match="s3:// is not supported"):
        Warehouse.open("s3://bucket/lake")


# --- the file that says what it is ---


@pytest.mark.parametrize("read_only", [False, True])
def test_a_warehouse_of_a_later_viewkeeper_is_refused(prepared: Path, read_only: bool) -> None:
    root = copy(prepared)
    path = root / HOME / "format.json"
    told = json.loads(path.read_bytes())
    path.unlink()
    path.write_text(json.dumps({**told, "format": told["format"] + 1, "more": "than is known"}))
    error = check_refused(lambda: Warehouse.open(root, read_only=read_only), root, FormatTooNew, path)
    assert "later viewkeeper" in error.hint


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"format": "one", "id": "x"}', b'{"format": 1}', b"\xff"]
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_spoilt_format_file_is_told(prepared: Path, content: bytes, read_only: bool) -> None:
    root = copy(prepared)
    path = root / HOME / "format.json"
    spoil(path, lambda _: content)
    check_refused(lambda: Warehouse.open(root, read_only=read_only), root, DamagedWarehouse, path)


# --- records and catalogs ---


def spoil(path: Path, how: Callable[[bytes], bytes]) -> Path:
    content = how(path.read_bytes())
    path.unlink()  # a copy shares its files with the original
    path.write_bytes(content)
    return path


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def other_number(content: bytes) -> bytes:
    body = json.loads(content)
    del body["crc"]
    return seal({**body, "commit": body["commit"] + 1})


def without_tables(content: bytes) -> bytes:
    body = json.loads(content)
    return seal({name: value for name, value in body.items() if name not in ("crc", "tables", "views")})


SPOILT = [
    lambda content: content[:-20],
    lambda content: content[: len(content) // 2],
    lambda _: b"",
    lambda _: b"[]",
    lambda _: b"\x00" * 100,
    lambda content: content.replace(b"shop", b"shoq"),
    flipped,
    without_tables,
]


def record(root: Path, number: int) -> Path:
    return root / HOME / "commits" / f"{number:020d}.json"


@pytest.mark.parametrize("how", [*SPOILT, other_number])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_spoilt_last_record_is_told(prepared: Path, how: Callable[[bytes], bytes], read_only: bool) -> None:
    root = copy(prepared)
    path = spoil(record(root, 3), how)

    def use() -> None:
        with Warehouse.open(root, read_only=read_only) as wh:
            wh.status()

    error = check_refused(use, root, DamagedWarehouse, path)
    assert "backup" in error.hint


def test_moving_a_spoilt_last_record_away_goes_back_to_the_commit_before(prepared: Path, tmp_path: Path) -> None:
    prepare(tmp_path / "shorter", commits=1)
    root = copy(prepared)
    spoil(record(root, 3), flipped).unlink()
    with Warehouse.open(root, compaction=None) as wh:
        assert image(root) == image(tmp_path / "shorter")
        make_small_commit(wh)
        assert Stored(root).leftovers() == set()


@pytest.mark.parametrize("how", [*SPOILT, other_number])
def test_a_spoilt_record_of_an_earlier_commit_is_told_by_what_needs_it(
    prepared: Path, how: Callable[[bytes], bytes]
) -> None:
    root = copy(prepared)
    path = spoil(record(root, 2), how)
    with Warehouse.open(root, compaction=None) as wh:
        assert wh.status().commit == 3
        check_refused(lambda: wh.states("orders"), root, DamagedWarehouse, path)
        check_refused(lambda: wh.vacuum(0, grace=0), root, DamagedWarehouse, path)
        make_small_commit(wh)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_missing_record_is_told(prepared: Path, read_only: bool) -> None:
    root = copy(prepared)
    record(root, 2).unlink()

    def use() -> None:
        with Warehouse.open(root, read_only=read_only, compaction=None) as wh:
            wh.states("orders") if read_only else wh.vacuum(0, grace=0)

    check_refused(use, root, DamagedWarehouse, record(root, 2))
    if not read_only:
        # After a crash of which it is not known what it has left, before anything is swept.
        (root / HOME / "closed.json").unlink()
        (root / HOME / "intents.log").unlink()
        check_refused(lambda: Warehouse.open(root), root, DamagedWarehouse, record(root, 2))


@pytest.mark.parametrize("read_only", [False, True])
def test_a_log_that_got_lost_is_not_taken_for_a_new_one(prepared: Path, read_only: bool) -> None:
    root = copy(prepared)
    for number in range(4):
        record(root, number).unlink()
    check_refused(
        lambda: Warehouse.open(root, read_only=read_only).status(), root, DamagedWarehouse, root / HOME / "commits"
    )
    record(root, 0).parent.rmdir()
    check_refused(
        lambda: Warehouse.open(root, read_only=read_only).status(), root, DamagedWarehouse, root / HOME / "commits"
    )


def test_something_else_among_the_records_is_told(prepared: Path) -> None:
    root = copy(prepared)
    (root / HOME / "commits" / "notes.txt").write_text("mine")
    (root / HOME / "closed.json").unlink()
    error = check_refused(lambda: Warehouse.open(root), root, DamagedWarehouse, root / HOME / "commits")
    assert "notes.txt" in error.detail


def test_something_else_among_the_files_is_left_alone(prepared: Path) -> None:
    root = copy(prepared)
    others = [root / HOME / "catalog" / "notes.txt", root / HOME / "notes.txt", root / "views" / "orders" / "notes.txt"]
    for path in others:
        path.write_text("mine")
    with Warehouse.open(root, compaction=None) as wh:
        make_small_commit(wh)
        wh.vacuum("1 day", grace="1 hour")
    assert [path.read_text() for path in others] == ["mine"] * 3


@pytest.mark.parametrize("how", [*SPOILT, None])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_spoilt_or_missing_catalog_is_told(
    prepared: Path, how: Callable[[bytes], bytes] | None, read_only: bool
) -> None:
    root = copy(prepared)
    path = root / HOME / "catalog" / f"{1:020d}.json"
    if how is None:
        path.unlink()
    else:
        spoil(path, how)
    check_refused(lambda: Warehouse.open(root, read_only=read_only).status(), root, DamagedWarehouse, path)


# --- tables ---


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    spoil(path, lambda content: content[: len(content) // 2])


def empty(path: Path) -> None:
    spoil(path, lambda _: b"")


def test_a_missing_delta_log_is_told(prepared: Path) -> None:
    for view in ("orders", "totals", "visits"):
        root = copy(prepared)
        log = root / "views" / view / "_delta_log"
        for path in log.iterdir():
            path.unlink()
        log.rmdir()
        check_refused(lambda root=root: Warehouse.open(root), root, DamagedWarehouse, log)
        with Warehouse.open(root, read_only=True) as reader:
            check_refused(reader.status, root, DamagedWarehouse, log)


@pytest.mark.parametrize("spoiling", [remove, cut, empty])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_spoilt_delta_log_is_told(prepared: Path, spoiling: Callable[[Path], None], version: int) -> None:
    root = copy(prepared)
    spoiling(root / "views" / "orders" / "_delta_log" / f"{version:020d}.json")
    check_refused(lambda: Warehouse.open(root).status(), root, DamagedWarehouse, root / "views" / "orders")
    with Warehouse.open(root, read_only=True) as reader:
        check_refused(reader.status, root, DamagedWarehouse, root / "views" / "orders")


def data_file(root: Path, place: str, kind: str) -> Path:
    """The newest data file of a kind."""
    return max((root / place).glob(f"{kind}*.parquet"))


@pytest.mark.parametrize("spoiling", [remove, cut, empty])
@pytest.mark.parametrize(("view", "kind"), [("orders", "base-"), ("orders", "delta-"), ("totals", "rows-")])
def test_a_spoilt_data_file_is_told_by_the_one_who_reads_it(
    prepared: Path,
    spark: "SparkSession",
    spoiling: Callable[[Path], None],
    view: str,
    kind: str,
) -> None:
    root = copy(prepared)
    spoiling(path := data_file(root, f"views/{view}", kind))
    with Warehouse.open(root, spark, compaction=None) as wh:
        check_refused(lambda: wh.read(view), root, DamagedWarehouse, path)
        check_refused(lambda: wh.sql(f"SELECT COUNT(*) FROM {view}"), root, DamagedWarehouse, path)
        assert wh.read("people").count() == 3


@pytest.mark.parametrize("spoiling", [remove, cut, empty])
def test_a_spoilt_file_of_changes_is_told_by_the_one_who_reads_it(
    place: Path, spark: "SparkSession", spoiling: Callable[[Path], None]
) -> None:
    root = place / f"changes {spoiling.__name__}"
    prepare(root)
    with Warehouse.open(root, spark, compaction=None) as wh:
        with wh.commit() as commit:
            commit.state("shop", {}, {"totals": totals(("cap", 1))})
            commit.state("shop", {}, {"totals": totals(("hat", 1))})
        spoiling(path := data_file(root, f"{HOME}/changes/totals", ""))
        assert wh.read("totals").count() == 4
        check_refused(lambda: wh.read("totals", 3), root, DamagedWarehouse, path)
        check_refused(lambda: wh.changes("totals", 2), root, DamagedWarehouse, path)
        assert wh.read("totals", 2).count() == 2


@pytest.mark.parametrize("spoiling", [remove, cut, empty])
def test_a_spoilt_data_file_is_told_by_a_commit_that_needs_it(prepared: Path, spoiling: Callable[[Path], None]) -> None:
    root = copy(prepared)
    spoiling(path := data_file(root, "views/totals", "rows-"))
    with Warehouse.open(root, compaction=None) as wh:
        check_refused(lambda: make_small_commit(wh), root, DamagedWarehouse, path)
        # What does not need it goes on.
        with wh.commit() as commit:
            commit.state("shop", {}, {"orders": orders((5, "x"))})


@pytest.mark.parametrize("spoiling", [remove, cut, empty])
def test_a_spoilt_delta_is_told_by_the_one_who_merges_it(prepared: Path, spoiling: Callable[[Path], None]) -> None:
    root = copy(prepared)
    spoiling(path := data_file(root, "views/orders", "delta-"))
    with Warehouse.open(root, compaction=None) as wh:
        writer = wh._writer
        check_refused(lambda: merge_deltas(writer, writer.catalog["orders"]), root, DamagedWarehouse, path)


def test_a_spoilt_base_is_told_by_compaction(place: Path, spark: "SparkSession") -> None:
    root = place / "compacted"
    prepare(root)
    cut(path := data_file(root, "views/orders", "base-"))
    with Warehouse.open(root, spark, compaction=CompactionPolicy()) as wh:
        check_refused(lambda: wh.compact("orders"), root, DamagedWarehouse, path)
        assert issubclass(DamagedWarehouse, WarehouseError)
