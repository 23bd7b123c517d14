"""What is new in a warehouse is for its owner alone, unless the owner says otherwise."""

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from lakes import add_states, make_large_commit, prepare

from viewkeeper.cli.main import viewkeeper
from viewkeeper.lake import compaction
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = [
    "CREATE MATERIALIZED VIEW joined AS SELECT o.id, p.name FROM shop.orders o JOIN crm.people p ON o.cust = p.id",
    "CREATE MATERIALIZED VIEW sums AS SELECT cust, MAX(amount) AS most, COUNT(*) AS n FROM shop.orders GROUP BY cust",
]


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Under which others may read what nobody restricts."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def permissions(root: Path) -> dict[str, set[str]]:
    """The permissions below a folder and its own, each with the names that have them."""
    found: dict[str, set[str]] = {}
    for path in [root, *root.rglob("*")]:
        mode = f"{'folder' if path.is_dir() else 'file'} {stat.S_IMODE(path.stat().st_mode):04o}"
        found.setdefault(mode, set()).add(path.relative_to(root).as_posix())
    return found


def only(root: Path, folders: str, files: str) -> None:
    found = permissions(root)
    assert found.keys() == {f"folder {folders}", f"file {files}"}, {
        mode: sorted(names)[:5] for mode, names in found.items()
    }


def call(*words: object) -> None:
    done = CliRunner().invoke(viewkeeper, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def test_all_that_the_command_line_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", "lake")
    with closing(sqlite3.connect("shop.db")) as shop:
        shop.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER, amount INTEGER);"
            "INSERT INTO orders VALUES (1, 7, 10)"
        )
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "people.csv").write_text("id,name\n7,Ann\n")
        call("add-source", "shop", "sqlite:///shop.db", "--install")
        call("add-source", "crm", f"files://{tmp_path}/files", "--key", "people=id")
        for view in VIEWS:
            call("create-view", view)
        for number in range(2, 14):  # enough for a checkpoint of a Delta log
            shop.executescript(f"INSERT INTO orders VALUES ({number}, 7, {number})")
            call("catch-up")
        (tmp_path / "files" / "people.csv").write_text("id,name\n7,Ann\n8,Bob\n")
        call("catch-up")
        call("compact")
        call("reload", "joined")
    assert list((tmp_path / "lake").rglob("*.checkpoint.parquet"))
    only(tmp_path / "lake", "0700", "0600")


def test_all_that_python_makes(tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path / "lake", commits=12)
    with Warehouse.open(tmp_path / "lake", spark) as wh:
        make_large_commit(wh)
        with wh.commit() as commit:
            commit.create("loaded", {"id": "BIGINT"}, rows=spark.range(1000).repartition(3), group="big")
        with wh.commit() as commit:
            frame = spark.range(5000, 6000).selectExpr("id", "1L AS _vk_weight")
            commit.state("big", {}, {"loaded": frame})
        with monkeypatch.context() as patched:
            patched.setattr(compaction, "MOST_ROWS", 0)  # by Spark, as what is large
            wh.compact("loaded")
        only(tmp_path / "lake", "0700", "0600")
        with wh.snapshot():
            only(tmp_path / "lake", "0700", "0600")


def test_a_folder_that_was_there_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    prepare(tmp_path / "lake")
    found = permissions(tmp_path / "lake")
    assert found.pop("folder 0755") == {"."}
    assert found.keys() == {"folder 0700", "file 0600"}


def test_what_is_shared_with_a_group_stays_so(tmp_path: Path) -> None:
    prepare(tmp_path / "lake")
    for path in [tmp_path / "lake", *(tmp_path / "lake").rglob("*")]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) | (0o050 if path.is_dir() else 0o040))
    with Warehouse.open(tmp_path / "lake") as wh:
        for number in range(3, 6):
            with wh.commit() as commit:
                add_states(commit, number)
    only(tmp_path / "lake", "0750", "0640")


def test_a_warehouse_made_before_stays_as_it_is(tmp_path: Path) -> None:
    prepare(tmp_path / "lake")
    for path in [tmp_path / "lake", *(tmp_path / "lake").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    with Warehouse.open(tmp_path / "lake") as wh, wh.commit() as commit:
        add_states(commit, 3)
    only(tmp_path / "lake", "0755", "0644")


def test_what_is_published_is_for_others(tmp_path: Path, spark: "SparkSession") -> None:
    prepare(tmp_path / "lake")
    with Warehouse.open(tmp_path / "lake", spark) as wh:
        wh.publish("orders", tmp_path / "copy")
        wh.publish("orders", tmp_path / "copy")
    only(tmp_path / "copy", "0755", "0644")


def test_notes_of_what_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from viewkeeper.planner.allowed_variables import AllowedVariables

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("P", "secret")
    AllowedVariables("w").note("shop", "mariadb://ann:${P}@db/shop")
    (file,) = tmp_path.rglob("*.json")
    assert json.loads(file.read_text())["source"] == "shop"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
