"""`docs/self-maintained-views.md`: its examples run, its pictures and limits are those of the code."""

import re
from itertools import count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page_examples import run_page
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.cli.main import VERBS
from viewkeeper.lake.tables import driver_memory
from viewkeeper.lake.tables.cached_reads import KEPT_FROM
from viewkeeper.maintenance.self_maintained import following
from viewkeeper.maintenance.self_maintained.lookups import MOST_SCANNED
from viewkeeper.planner.self_maintained import automatic, change_rates
from viewkeeper.planner.self_maintained.choosing import AUTO, OF_SELF_MAINTAINED
from viewkeeper.sql.definition import PROPERTIES
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.storage.self_maintained import STORAGES, operand_changes, refresh, storage_of
from viewkeeper.storage.tables import HeldTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "self-maintained-views.md"
TEXT = PAGE.read_text(encoding="utf-8")
COLUMNS, TYPES = ("tid", "a", "b"), ("STRING", "BIGINT", "BIGINT")
RELATIONS = {name: Relation(name, name.split(".")[0], COLUMNS, TYPES, ("tid",)) for name in ("one.r", "two.s")}
SELECT = "SELECT r.a, r.b AS rb, s.b AS sb FROM one.r r JOIN two.s s ON r.a = s.a"
R = [("r1", 1, 10), ("r2", 2, 11), ("r3", 3, 12), ("r4", 4, 13)]
S = [("s1", 1, 20), ("s2", 2, 21), ("s3", 5, 22), ("s4", 6, 23)]


def test_the_examples_run(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGE)


def picture(storage_name: str) -> str:
    """The tables that a storage keeps of the example, side by side."""
    storage = storage_of(parse_view(SELECT, RELATIONS), storage_name)
    tables = HeldTables({one.name: MemoryZSet(one.columns) for one in storage.structures})
    given = {
        number: MemoryZSet(leaf.operand.columns, [(row, 1) for row in rows])
        for number, (leaf, rows) in enumerate(zip(storage.tree.leaves, (R, S), strict=True))
    }
    changes, _ = refresh(storage, tables, operand_changes(storage, tables, given, count()), view=False)
    blocks = []
    for structure in storage.structures:
        rows = [["-" if value is None else str(value) for value in row] for row, _ in changes[structure.name].weights()]
        rows.sort(key=lambda row: [(value == "-", value) for value in row])
        widths = [max(map(len, column)) for column in zip(structure.columns, *rows, strict=True)]
        lines = [
            " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in (structure.columns, *rows)
        ]
        width = max(len(structure.name), len(lines[0]))
        blocks.append([line.ljust(width) for line in (structure.name, *lines)])
    beside = zip_longest(*blocks, fillvalue="")
    return "\n".join(
        "   ".join(cell.ljust(len(block[0])) for cell, block in zip(line, blocks, strict=True)).rstrip()
        for line in beside
    )


@pytest.mark.parametrize("storage", STORAGES)
def test_the_pictures_are_what_is_stored(storage: str) -> None:
    assert f"```text\n{picture(storage)}\n```" in TEXT


def column(first_heading: str, place: int) -> list[str]:
    """The code in one column of a table of the page."""
    (_, table) = TEXT.split(f"\n| {first_heading} |", 1)
    rows = table.split("\n\n", 1)[0].splitlines()[2:]
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row.strip("|").split(" | ")[place])]


def test_every_storage_is_on_the_page() -> None:
    assert column("storage", 0) == ["remote", *STORAGES, AUTO]


def test_every_property_is_on_the_page() -> None:
    assert set(column("property", 0)) == set(OF_SELF_MAINTAINED)
    assert set(OF_SELF_MAINTAINED) < set(PROPERTIES)


def test_limits_are_those_of_the_code() -> None:
    limits = {
        f"up to {following.FEW:,} changed rows": "Python",
        f"up to {following.MOST_CHANGES:,} changed rows": "Arrow",
        f"more than {MOST_SCANNED:,} rows a job of Spark": "Spark",
        f"at most {automatic.SMALL_FAN_OUT:g} rows for each row of its largest relation": "fan-out",
        f"at least {automatic.WIDE:g} times": "wide",
        f"the last {change_rates.LOOKED_AT} commits": "rates",
    }
    flat = " ".join(TEXT.split())
    assert {what: phrase for phrase, what in limits.items() if phrase not in flat} == {}
    assert driver_memory.SHARE == 8, "the page says an eighth"
    assert KEPT_FROM == 3, "the page says the third read"
    assert automatic.BUSY == 3600, "the page says one a second"
    assert change_rates.SHORTEST == 60, "the page says a minute"


def test_every_verb_is_one() -> None:
    named = set(re.findall(r"^viewkeeper ([a-z-]+)", TEXT, re.MULTILINE))
    assert named >= {"add-source", "create-view", "explain", "audit"}
    assert named <= set(VERBS)
