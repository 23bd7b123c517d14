"""The benchmark of summary tables: every way that it measures has the same results, and wrong ones are found."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
import retail
import retail_warehouse
from retail import Effort, effort_of
from retail_data import Retail
from retail_figure import BEGIN, END
from retail_rounds import Inexact, in_turns
from retail_views import FIGURE_1, recomputed_on_driver
from retail_warehouse import INSERTION, UPDATE, RetailWarehouse, same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "retail.py"
ONCE = {"warm_ups": 0, "rounds": 1}

# Minutes of Spark, for what is no part of the product.
pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def shop(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> RetailWarehouse:
    return RetailWarehouse(Retail(4_000, batches=8, spark=spark), tmp_path_factory.mktemp("retail"))


@pytest.mark.parametrize("kind", [UPDATE, INSERTION])
def test_every_way_is_measured_and_exact(shop: RetailWarehouse, kind: str) -> None:
    medians = in_turns([shop], kind, 200, counting=True, **ONCE)[4_000]
    assert set(medians) == {
        "commit",
        "propagate",
        "refresh",
        "propagate_and_refresh",
        "propagate_on_driver",
        "propagate_on_driver_without_lattice",
        "propagate_in_spark",
        "propagate_in_spark_without_lattice",
        "rematerialize",
        "recompute_with_lattice",
        "recompute_each",
        "counting",
    }
    assert min(medians.values()) > 0


def test_without_the_lattice_everything_comes_from_the_changes(shop: RetailWarehouse) -> None:
    assert {shop._from_changes(name).above.name for name in shop.lattice.nodes} == {"changes"}


@pytest.mark.parametrize(
    "wrong",
    [
        # Fewer and more are each found from one side only.
        FIGURE_1["sR_sales"].replace("SUM(p.qty)", "SUM(p.qty) + 1"),
        FIGURE_1["sR_sales"] + " HAVING s.region <> 'region 03'",
        FIGURE_1["sR_sales"] + " UNION ALL SELECT 'region 03', 1, 1",
    ],
    ids=["other", "fewer", "more"],
)
def test_a_table_with_other_rows_than_pos_is_found(
    shop: RetailWarehouse, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    assert shop.inexact() == []
    monkeypatch.setitem(retail_warehouse.FIGURE_1, "sR_sales", wrong)
    assert shop.inexact() == ["sR_sales"]


def test_nothing_is_told_of_a_wrong_table(shop: RetailWarehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(retail_warehouse.FIGURE_1, "sR_sales", FIGURE_1["sR_sales"].replace("COUNT(*)", "1 + COUNT(*)"))
    with pytest.raises(Inexact, match="with 4,000 sales, pos does not have the rows of sR_sales"):
        in_turns([shop], INSERTION, 20, **ONCE)


def test_a_wrong_count_is_found(shop: RetailWarehouse) -> None:
    before, changes = shop.contents(), shop.next_changes(UPDATE, 100)
    shop.maintain(changes)
    assert shop.miscounted(shop.count(before, changes)) == []
    # The rows of the next changes are not counted yet.
    counted = shop.count(shop.contents(), changes)
    shop.maintain(shop.next_changes(INSERTION, 100))
    assert shop.views["sR_sales"] in shop.miscounted(counted)


def test_what_is_asked_for() -> None:
    assert effort_of([]).rows == [1_000_000, 10_000_000]
    assert effort_of(["--rows", "300000", "200000", "--large"]).rows == [200_000, 300_000, 50_000_000]
    # Three rounds and one to count.
    assert effort_of(["--warm-ups", "1", "--rounds", "2"]).batches == 4
    with pytest.raises(SystemExit):
        effort_of(["--rounds", "0"])


@pytest.mark.parametrize(
    ("asked", "small"),
    [
        (["--rows", "70000"], "70,000"),
        (["--changes", "1000000"], "1,000,000"),
    ],
)
def test_more_deletions_than_sales(asked: list[str], small: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        effort_of(asked)
    assert f"too many changes for a pos of {small}" in capsys.readouterr().err


@dataclass
class TimedShop:
    """A warehouse of which only the size matters."""

    retail: Retail
    load_seconds: float = 1.0
    create_seconds: float = 2.0

    def sizes(self) -> dict[str, int]:
        return {"pos": self.retail.rows, "sr_sales": 10}


def made_up(shops: Sequence[TimedShop], kind: str, changes: int, **_: object) -> dict[int, dict[str, float]]:
    """Recomputation takes a second for a thousand sales, propagation one for a thousand changes."""
    ways = {
        "commit": 3.0,
        "propagate": 1.0,
        "refresh": 0.5,
        "propagate_and_refresh": 1.5,
        "propagate_on_driver": 1.0,
        "propagate_on_driver_without_lattice": 2.0,
        "propagate_in_spark": 4.0,
        "propagate_in_spark_without_lattice": 12.0,
    }
    propagated = {way: factor * changes / 1000 for way, factor in ways.items()}
    factors = {"rematerialize": 3, "recompute_with_lattice": 1, "recompute_each": 2, "counting": 6}
    return {
        shop.retail.rows: propagated | {way: factor * shop.retail.rows / 1000 for way, factor in factors.items()}
        for shop in shops
    }


def test_the_report_has_every_ratio(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retail, "in_turns", made_up)
    monkeypatch.setattr(retail, "_loaded", lambda spark, _home, rows, _batches: TimedShop(Retail(rows, spark=spark)))
    effort = Effort([30_000, 60_000], 1_000, 0, 1)
    report = json.loads(json.dumps(retail.measure(spark, tmp_path, effort)))
    check_report(report, ["30,000", "60,000"])
    assert report["sales"]["60,000"]["update_generating"]["ratios"] == {
        "recompute / commit, on the driver": 60.0,
        "recompute each / with lattice, in Spark": 2.0,
        "counting / recompute with lattice, in Spark": 6.0,
        "propagate without lattice / with, on the driver": 2.0,
        "propagate without lattice / with, in Spark": 3.0,
    }
    assert report["propagate, most sales / fewest"]["insertion"]["propagate"] == 1.0


def check_report(report: dict[str, Any], sizes: list[str]) -> None:
    assert list(report["sales"]) == sizes
    for sales, told in report["sales"].items():
        assert told["rows"]["pos"] == int(sales.replace(",", ""))
        assert told["rows"]["sr_sales"] == 10
        for kind in ("update_generating", "insertion_generating"):
            assert min(told[kind]["ratios"].values()) > 0
    assert set(report["propagate, most sales / fewest"]) == {UPDATE, INSERTION}
    assert report["peak_memory_mb"]["driver"] > 0


def test_the_script() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--quick"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_report(json.loads(done.stdout), ["100,000"])


def test_on_the_driver_the_tables_are_recomputed_as_in_spark(shop: RetailWarehouse) -> None:
    made = recomputed_on_driver(shop._folder / "plain")
    for name, query in FIGURE_1.items():
        assert same_rows(made[name], shop.spark.sql(query, None, **shop.plain).toArrow()), name


def test_the_script_of_figure_10(tmp_path: Path) -> None:
    figure, page = tmp_path / "figure-10.svg", tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    command = [sys.executable, str(SCRIPT.with_name("retail_figure.py")), "--quick"]
    done = subprocess.run(
        [*command, "--figure", str(figure), "--page", str(page)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    panels = json.loads(done.stdout)["panels"]
    assert [panel["x"] for panel in panels.values()] == [[200, 400], [20_000, 40_000]] * 2
    drawn = {group.get("id") for group in ElementTree.parse(figure).getroot()}
    assert {f"panel-{letter}" for letter in "abcd"} <= drawn
    told = page.read_text()
    assert told.startswith("before\n")
    assert told.endswith("after\n")
    assert "old" not in told
    assert "](figure-10.svg)" in told
    assert told.count("| a |") == told.count("| d |") == 2
