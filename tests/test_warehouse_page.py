"""`docs/warehouse.md` holds what it promises: its Python and its commands run, and it names every field of a record."""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.cli.main import viewkeeper
from viewkeeper.lake.log.catalog import Layout
from viewkeeper.lake.log.commit_log import record_name
from viewkeeper.lake.log.halts import HALTED
from viewkeeper.lake.log.record import unseal
from viewkeeper.lake.log.source_files import SOURCES, WORKSPACES
from viewkeeper.serving.running import RUNNING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parent.parent / "docs" / "warehouse.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<language>python|sh)\n(?P<code>.*?)^```", flags=re.DOTALL | re.MULTILINE)


def run_commands(block: str) -> None:
    for command in block.splitlines():
        done = CliRunner().invoke(viewkeeper, shlex.split(command, comments=True)[1:])
        assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception!r}"


def test_the_examples_run(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page, in one folder and one namespace."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    languages = []
    for block in BLOCK.finditer(TEXT):
        languages.append(block["language"])
        if block["language"] == "python":
            # Padded, so that a failure names the line of the page.
            lines = "\n" * TEXT.count("\n", 0, block.start("code"))
            exec(compile(lines + block["code"], str(PAGE), "exec"), names)
            continue
        run_commands(block["code"])
    assert languages.count("python") > 5
    assert "sh" in languages


def documented(heading: str) -> set[str]:
    """The fields in the table with this heading."""
    rows = TEXT.split(f"| {heading} | meaning |\n", 1)[1].split("\n\n", 1)[0]
    return set(re.findall(r"^\| `(\w+)` \|", rows, flags=re.MULTILINE))


def test_every_field_of_a_record_is_explained(tmp_path: Path) -> None:
    columns = {"n": "BIGINT"}
    with Warehouse.open(tmp_path / "lake") as warehouse:
        with warehouse.commit() as commit:
            for layout in Layout:
                commit.create(layout.value, columns, layout=layout)
        with warehouse.commit() as commit:
            changes = {layout.value: MemoryZSet.of(("n",), (1,)) for layout in Layout}
            commit.state("main", {"s": "1"}, changes)
    content = (tmp_path / "lake" / record_name(2)).read_bytes()
    record = unseal(content)
    assert documented("field") == record.keys() | {"crc"}
    assert documented("field of a table") == {field for table in record["tables"].values() for field in table}
    assert documented("field of a group") == record["groups"]["main"].keys()


def test_the_tree_is_the_one_on_disk(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path) as warehouse:
        with warehouse.commit() as commit:
            commit.create("v", {"n": "BIGINT"}, rows=MemoryZSet.of(("n",), (1,)), layout="rewritten")
        with warehouse.commit() as commit:
            commit.state("main", {"s": "1"}, {"v": MemoryZSet.of(("n",), (2,))})
        with warehouse.snapshot():
            there = {path.name for path in (tmp_path / "_viewkeeper").iterdir()}
    there |= {path.name for path in (tmp_path / "_viewkeeper").iterdir()}
    shown = TEXT.split("  _viewkeeper/\n")[1].split("  views/")[0].splitlines()
    live = {name.split("/")[1] for name in (SOURCES, WORKSPACES, HALTED, RUNNING)}
    assert there | live == {line.split()[0].split("/")[0] for line in shown}
