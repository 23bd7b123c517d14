"""`viewkeeper cube` over SQLite: what it chooses, what it prints, what it creates, how it fails."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from viewkeeper import Warehouse
from viewkeeper.cli.main import main, viewkeeper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CUBE = ("cube", "--fact", "retail.pos", "--measures", "COUNT(*) AS n, SUM(qty) AS q")
ALL = ("--dimensions", "storeID,city,region,itemID,date")


def call(*words: object) -> Result:
    return CliRunner().invoke(viewkeeper, [str(word) for word in words], catch_exceptions=False)


def output(*words: object) -> str:
    done = call(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: "SparkSession") -> Path:
    """Twelve stores in four cities and two regions; every store sells two items on three days. No view yet."""
    folder = tmp_path_factory.mktemp("cube")
    with closing(sqlite3.connect(folder / "retail.db")) as connection:
        connection.executescript(
            "CREATE TABLE stores (storeID INTEGER PRIMARY KEY, city TEXT, region TEXT);"
            "CREATE TABLE items (itemID INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE pos (id INTEGER PRIMARY KEY, storeID INTEGER, itemID INTEGER, date DATE, qty INTEGER)"
        )
        for store in range(12):
            connection.execute(
                "INSERT INTO stores VALUES (?, ?, ?)", (store, f"city {store % 4}", f"region {store % 2}")
            )
            for sale in range(6):
                day = f"2024-01-0{1 + sale % 3}"
                connection.execute("INSERT INTO pos VALUES (NULL, ?, ?, ?, ?)", (store, sale % 2, day, sale))
        # A sale of a store that nobody knows.
        connection.execute("INSERT INTO pos VALUES (NULL, 99, 0, '2024-01-01', 1)")
        connection.commit()
    with Warehouse.open(folder / "lake", spark) as warehouse:
        warehouse.add_source(
            "retail",
            f"sqlite:///{folder / 'retail.db'}",
            install=True,
            hierarchies={"stores": ["storeID", "city", "region"]},
        )
    return folder / "lake"


def test_a_dry_run_shows_the_choice_and_creates_nothing(lake: Path) -> None:
    done = call(*CUBE, *ALL, "--count", 2, "--dry-run", "-w", lake)
    assert done.exit_code == 0, done.output
    told = done.stdout.splitlines()
    # storeID, city, region or none; itemID or none; date or none
    assert told[0] == "cube       16 points over retail.pos, sizes counted"
    assert told[1].startswith("reading    1,168 rows with the top alone, ")
    headings, top, first, second = (" ".join(line.split()) for line in told[4:8])
    assert headings == "table groups rows benefit share rows read after"
    assert top == "pos_storeid_itemid_date storeID, itemID, date 73 - - 1,168"
    # Eight points join stores, and come from the first; four do not, and come from the second.
    assert first == f"pos_city_itemid_date city, itemID, date 24 {8 * (73 - 24)} 42% 776"
    assert second == f"pos_itemid_date itemID, date 6 {4 * (73 - 6)} 29% 508"
    assert told[9] == "nothing was created; these statements would be run:"
    assert told[10].startswith("CREATE MATERIALIZED VIEW `pos_storeid_itemid_date` AS SELECT ")
    assert "counting the groups of 16 points of the cube" in done.stderr
    assert json.loads(output("status", "-w", lake, "--json"))["views"] == []


def test_the_choice_as_json(lake: Path) -> None:
    told = json.loads(output(*CUBE, *ALL, "--space-budget", 100, "--dry-run", "--json", "-w", lake))
    assert (told["fact"], told["points"], told["exact"], told["created"]) == ("retail.pos", 16, True, False)
    assert (told["hidden_rows"], told["cost_of_top"]) == (0, 16 * 73)
    names = [view["name"] for view in told["views"]]
    assert names[:3] == ["pos_storeid_itemid_date", "pos_total", "pos_itemid"]
    assert told["space"] == sum(view["estimated_rows"] for view in told["views"]) <= 100
    costs = [view["cost_after"] for view in told["views"]]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == told["cost_of_top"] - sum(view["benefit"] for view in told["views"])
    total = told["cost_of_top"] - told["cost_of_all"]
    assert [view["share"] for view in told["views"]] == [view["benefit"] / total for view in told["views"]]


Fails = Callable[..., str]


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fails:
    """Runs words that must fail with exit code 2; what is said."""

    def run(*words: object) -> str:
        monkeypatch.setattr("sys.argv", ["viewkeeper", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr().err
        assert stop.value.code == 2, said
        assert "a mistake in viewkeeper" not in said
        return said

    return run


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--fact", "retail.poss", "--dimensions", "date", "--measures", "COUNT(*) AS n", "--count", 1),
            "did you mean",
        ),
        (("--fact", "retail.pos", "--dimensions", "ctiy", "--measures", "COUNT(*) AS n", "--count", 1), "mean city?"),
        (("--fact", "retail.pos", "--dimensions", "date", "--measures", "qty AS q", "--count", 1), "is no aggregate"),
        ((*CUBE[1:], *ALL, "--count", 1, "--space-budget", 9), "a space budget and a count are two limits"),
        ((*CUBE[1:], *ALL), "nothing says how much may be stored"),
        ((*CUBE[1:], *ALL, "--count", 1, "--refresh", "sometimes"), "the property refresh is 'sometimes'"),
        (
            (*CUBE[1:], *ALL, "--space-budget", 72),
            "a budget of 72 rows does not hold the top of the cube, (storeID, itemID, date), which is always stored: "
            "it has 73",
        ),
    ],
)
def test_what_is_refused(words: tuple[object, ...], told: str, lake: Path, fails: Fails) -> None:
    assert told in fails("cube", *words, "-w", lake)


def test_created_in_one_go_and_used(lake: Path, fails: Fails) -> None:
    done = call(*CUBE, *ALL, "--count", 2, "--name", "sales", "-w", lake)
    assert done.exit_code == 0, done.output
    assert "creating sales_storeid_itemid_date (1 of 3)" in done.stderr
    assert done.stdout.splitlines()[-1] == "created 3 tables"
    views = {view["view"]: view for view in json.loads(output("status", "-w", lake, "--json"))["views"]}
    assert {name: views[name]["rows"] for name in views if name.startswith("sales")} == {
        "sales_storeid_itemid_date": 73,
        "sales_city_itemid_date": 24,
        "sales_itemid_date": 6,
    }
    assert len({view["group"] for name, view in views.items() if name.startswith("sales")}) == 1
    query = "SELECT region, SUM(qty) AS q FROM retail.pos JOIN retail.stores USING (storeID) GROUP BY 1 ORDER BY 1"
    assert output("query", query, "--format", "csv", "-w", lake) == "region,q\nregion 0,90\nregion 1,90\n"
    assert "there is a view 'sales_storeid_itemid_date' already" in fails(
        *CUBE, *ALL, "--count", 1, "--name", "sales", "-w", lake
    )


def test_sizes_come_from_stored_tables_once_there_are_some(lake: Path, spark: "SparkSession") -> None:
    with Warehouse.open(lake, spark) as warehouse:
        source = Path(warehouse.sources[0].url.removeprefix("sqlite:///"))
        source.rename(source.with_suffix(".gone"))
        try:
            choice = warehouse.cube(
                "retail.pos", ["storeID", "itemID", "date"], "COUNT(*) AS n", count=1, name="again", dry_run=True
            )
        finally:
            source.with_suffix(".gone").rename(source)
    assert [(view.attributes, view.estimated_rows) for view in choice.views] == [
        (("storeID", "itemID", "date"), 73),
        (("itemID", "date"), 6),
    ]


def test_a_top_that_joins_stands_on_a_hidden_table(lake: Path, spark: "SparkSession") -> None:
    with Warehouse.open(lake, spark) as warehouse:
        choice = warehouse.cube(
            "retail.pos", ["city", "date"], "MAX(qty) AS most", count=0, name="hidden", dry_run=True
        )
        assert (choice.views[0].estimated_rows, choice.hidden_rows, choice.points) == (12, 37, 4)
        assert choice.cost_of_top == 4 * 37
