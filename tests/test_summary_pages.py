"""`docs/summary-tables.md` and `docs/summary-delta.md`: examples run, tables and figures are those of the code."""

import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page_examples import run_page
from viewkeeper import Warehouse
from viewkeeper.cli.main import VERBS
from viewkeeper.errors import UnsupportedClause
from viewkeeper.lake.tables import driver_memory
from viewkeeper.maintenance import contents
from viewkeeper.maintenance.summaries import creating, input_changes, round, schedule
from viewkeeper.maintenance.summaries.rounding import SAME
from viewkeeper.planner.summaries import decision, refused
from viewkeeper.sql.definition import PROPERTIES
from viewkeeper.sql.grouping import MOST_DIMENSIONS, MOST_SETS
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Function, SummaryView
from viewkeeper.summary.statements import MAX_PRECISION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
PAGE, ALGORITHM = ROOT / "docs" / "summary-tables.md", ROOT / "docs" / "summary-delta.md"
TEXT = PAGE.read_text(encoding="utf-8")
POS = Relation(
    "retail.pos",
    "retail",
    ("id", "storeID", "itemID", "date", "qty", "price"),
    ("BIGINT", "BIGINT", "BIGINT", "DATE", "BIGINT", "DOUBLE"),
    ("id",),
)


def test_the_examples_run(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGE)
    assert (tmp_path / "lattice.svg").read_text(encoding="utf-8").startswith("<svg")


def column(first_heading: str, place: int) -> list[str]:
    """The code in one column of a table of the page."""
    (_, table) = TEXT.split(f"\n| {first_heading} |", 1)
    rows = table.split("\n\n", 1)[0].splitlines()[2:]
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row.strip("|").split(" | ")[place])]


KEPT, REFUSED = column("in a summary", 1), column("not in a lattice", 0)


def summary(call: str) -> SummaryView:
    made = parse_definition(f"SELECT date, {call} AS x FROM retail.pos GROUP BY date", {"retail.pos": POS})
    assert isinstance(made, SummaryView)
    return made


@pytest.mark.parametrize("call", KEPT)
def test_what_can_be_kept_can_be_kept(call: str) -> None:
    assert summary(call).aggregates


def test_every_function_is_shown() -> None:
    shown = {one.function for call in KEPT for one in summary(call).aggregates}
    assert shown == set(Function)


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_not_in_a_lattice_is_none(call: str) -> None:
    with pytest.raises(UnsupportedClause):
        summary(call)


def test_every_property_of_a_summary_is_on_the_page() -> None:
    assert set(column("property", 0)) == set(refused.OF_SUMMARIES)
    assert set(refused.OF_SUMMARIES) < set(PROPERTIES)


def test_limits_are_those_of_the_code() -> None:
    limits = {
        f"up to {creating.MOST_REWRITTEN:,} rows is rewritten by every refresh": "layout",
        f"whenever {schedule.PROPAGATE_AT:,} changes wait": "propagate by itself",
        f"up to {input_changes.MOST_CHANGES_ON_DRIVER:,} changes, dimensions up to {contents.SMALL:,} rows": "driver",
        f"all tables of the lattice up to {round.MOST_ON_DRIVER_AT_ONCE:,} rows": "dimensions",
        f"in tables of up to {contents.MOST_ON_DRIVER:,} rows": "lookups",
        f"a table of up to {contents.MOST_ON_DRIVER:,} rows": "memory",
        f"At most {decision.TOO_FEW:,} changes are never a reason": "recompute",
        f"at most {MOST_DIMENSIONS} dimensions, and GROUP BY at most {MOST_SETS} sets": "families",
        f"no more than {SAME:g}".replace("1e-09", "1e-9"): "audit",
        f"at most {MAX_PRECISION} digits": "sums",
    }
    flat = " ".join(TEXT.split())
    assert {what: phrase for phrase, what in limits.items() if phrase not in flat} == {}
    assert decision.WORTH_RECOMPUTING == 0.5, "the page says half as many"
    assert driver_memory.SHARE == 8, "the page says an eighth"


def test_every_verb_about_summaries_is_on_the_page() -> None:
    named = set(re.findall(r"^viewkeeper ([a-z-]+)", TEXT, re.MULTILINE))
    assert named >= {"add-source", "create-view", "catch-up", "propagate", "refresh", "explain", "lattice", "cube"}
    assert named <= set(VERBS)


RETAIL = """
    CREATE TABLE stores (storeID INTEGER PRIMARY KEY, city TEXT, region TEXT);
    CREATE TABLE items (itemID INTEGER PRIMARY KEY, category TEXT);
    CREATE TABLE pos (storeID INTEGER, itemID INTEGER, date DATE, qty INTEGER);
    INSERT INTO stores VALUES (1, 'Bern', 'West'), (2, 'Basel', 'West');
    INSERT INTO items VALUES (1, 'office'), (2, 'office');
    INSERT INTO pos VALUES (1, 1, '2024-01-01', 3), (1, 1, '2024-01-02', 4), (2, 2, '2024-01-01', 1),
        (2, 1, '2024-01-02', 9);
"""
CHANGE = "BEGIN; DELETE FROM pos WHERE qty = 3; INSERT INTO pos VALUES (1, 2, '2024-01-01', 5); COMMIT"
TOTALS = "COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity"
FIGURE_1 = {
    "SID_sales": f"SELECT storeID, itemID, date, {TOTALS} FROM retail.pos GROUP BY storeID, itemID, date",
    "sCD_sales": f"SELECT city, date, {TOTALS} FROM retail.pos JOIN retail.stores USING (storeID) GROUP BY city, date",
    "SiC_sales": f"SELECT storeID, category, MIN(date) AS EarliestSale, {TOTALS} "
    "FROM retail.pos JOIN retail.items USING (itemID) GROUP BY storeID, category",
    "sR_sales": f"SELECT region, {TOTALS} FROM retail.pos JOIN retail.stores USING (storeID) GROUP BY region",
}


def test_the_lattice_of_figure_1_is_the_one_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = sqlite3.connect("retail.db")
    database.executescript(RETAIL)
    with Warehouse.open("lake") as warehouse:
        hierarchies = {"stores": ["storeID", "city", "region"]}
        warehouse.add_source("retail", "sqlite:///retail.db", hierarchies=hierarchies, install=True)
        for name, select in FIGURE_1.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {select}")
        database.executescript(CHANGE)
        warehouse.catch_up()
        (lattice,) = warehouse.lattice()
        figures = lattice.last_refresh.figures if lattice.last_refresh else {}
    database.close()
    page = ALGORITHM.read_text(encoding="utf-8")
    assert f"```text\n{lattice.text}```" in page
    rows = {name: told["summary_delta"] for name, told in figures["tables"].items() if not name.startswith("_vk_")}
    shown = re.findall(r"^sd_(\w+_sales) +(.*)$", page, re.MULTILINE)
    assert rows == {name: deltas.count("COUNT") for name, deltas in shown}
