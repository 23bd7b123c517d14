"""Files that are missing, cut short or changed are found: all of them by an audit, and most by whoever reads them."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from lakes import add_states, prepare

from run_size import some
from viewkeeper.cli.main import viewkeeper
from viewkeeper.clock import seeded
from viewkeeper.errors import DamagedWarehouse
from viewkeeper.lake.file_audit import audit_files
from viewkeeper.lake.log.store import open_store
from viewkeeper.lake.tables.parquet_files import checksum_in, checksum_of
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 16
NO_PART_OF_A_STATE = ("writer.lock", "pins", "closed.json", "intents.log")


def needed(lake: Path) -> list[Path]:
    """Every file of a warehouse that says what its states are."""
    files = [path for path in sorted(lake.rglob("*")) if path.is_file()]
    return [path for path in files if not any(name in path.parts for name in NO_PART_OF_A_STATE)]


def flip(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def wrong(lake: Path) -> dict[str, str]:
    return dict(audit_files(open_store(lake)).wrong)


@pytest.fixture
def lake(prepared: Path, tmp_path: Path) -> Path:
    shutil.copytree(prepared, tmp_path / "lake")
    return tmp_path / "lake"


def test_what_was_written_is_right(lake: Path) -> None:
    found = audit_files(open_store(lake))
    assert found.clean
    assert found.files >= len(needed(lake))
    assert found.without_checksum == 0
    for path in lake.rglob("*.parquet"):
        assert checksum_in(path.name) == checksum_of(path), path


@pytest.mark.parametrize("bits", some([1, 4], 1))
def test_every_flipped_bit_is_found(lake: Path, bits: int) -> None:
    chance = seeded(SEED)
    for path in needed(lake):
        content = path.read_bytes()
        for bit in {chance.randrange(8 * len(content)) for _ in range(bits)}:
            path.write_bytes(flip(content, bit))
            assert wrong(lake), f"bit {bit} of {path}"
        path.write_bytes(content)
    assert not wrong(lake)


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_every_file_that_is_missing_or_cut_short_is_found(lake: Path, change: Callable[[Path], object]) -> None:
    # No state needs what was before the first view; without the last record the one before it is the last.
    first, *_, last = sorted((lake / "_viewkeeper" / "commits").iterdir())
    for path in needed(lake):
        if path in (first, last) or (path.name in ("checkpoint.json", first.name) and "_viewkeeper" in path.parts):
            continue
        content = path.read_bytes()
        change(path)
        assert wrong(lake), path
        path.write_bytes(content)


def test_a_reader_sees_no_other_values(lake: Path) -> None:
    """Small files are verified whole whenever they are read."""
    chance = seeded(SEED)
    with Warehouse.open(lake, read_only=True) as wh:
        for view in ("orders", "totals"):
            newest = max((lake / "views" / view).glob("*.parquet"))
            content = newest.read_bytes()
            right = wh.arrow(view)
            for _ in range(10):
                newest.write_bytes(flip(content, chance.randrange(8 * len(content))))
                with suppress(DamagedWarehouse):
                    assert wh.arrow(view) == right
            newest.write_bytes(content)


def test_pages_of_large_files_are_verified(
    tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    from viewkeeper.lake.tables import parquet_files

    monkeypatch.setattr(parquet_files, "SMALL", 0)
    with Warehouse.open(tmp_path / "lake", spark) as wh:
        with wh.commit() as commit:
            rows = spark.range(20_000).selectExpr("id", "rand(1) AS x")
            commit.create("big", {"id": "BIGINT", "x": "DOUBLE"}, rows=rows)
        (path, *_) = (one for one in (tmp_path / "lake" / "views").rglob("*.parquet") if one.stat().st_size > 10_000)
        assert checksum_in(path.name) == checksum_of(path)
        content, chance = path.read_bytes(), seeded(SEED)
        for _ in range(3):
            # In its first half: there are pages, and no footer.
            path.write_bytes(flip(content, chance.randrange(800, 4 * len(content))))
            with pytest.raises(DamagedWarehouse, match="is damaged"):
                wh.arrow("big")
            with pytest.raises(Exception, match=r"CRC|checksum|FAILED_READ_FILE"):
                wh.read("big").collect()


def test_the_command(lake: Path) -> None:
    def call(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(viewkeeper, ["audit", "--files", "-w", str(lake), *words], catch_exceptions=False)
        return done.exit_code, done.stdout

    code, said = call()
    assert code == 0
    assert said.endswith("files, all right\n")
    path = next((lake / "views" / "orders").glob("delta-*.parquet"))
    path.write_bytes(flip(path.read_bytes(), 200))
    code, said = call()
    assert code == 1
    assert f"{path.relative_to(lake)}: WRONG: its content is not what was written" in said
    code, said = call("--json")
    assert code == 1
    assert json.loads(said)["wrong"][0]["file"] == str(path.relative_to(lake))


def test_beside_a_writer_and_after_vacuum(tmp_path: Path) -> None:
    prepare(tmp_path / "lake", commits=25)
    with Warehouse.open(tmp_path / "lake", compaction=None) as wh:
        assert wh.audit_files().clean
        wh.vacuum("0 seconds", grace="0 seconds")
        assert wh.audit_files().clean
        with wh.commit() as commit:
            add_states(commit, 26)
        found = wh.audit_files()
        assert found.clean
        assert found.files > 5


def test_files_without_a_checksum_are_read(lake: Path) -> None:
    """As earlier versions wrote them."""
    renamed = 0
    for log in lake.rglob("_delta_log/*.json"):
        for path in log.parent.parent.glob("*.parquet"):
            old = f"{path.name.rpartition('-')[0]}.parquet"
            if path.name in log.read_text() and not path.with_name(old).exists():
                path.rename(path.with_name(old))
                renamed += 1
    assert renamed
    assert wrong(lake)
