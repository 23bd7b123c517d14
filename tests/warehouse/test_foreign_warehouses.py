"""A warehouse is data, not code: what a catalog says passes the checks of a new view before Spark sees it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from viewkeeper.cli.main import main
from viewkeeper.errors import DamagedWarehouse, SyntaxProblem, UnsupportedClause, ViewkeeperError
from viewkeeper.lake.log.record import seal, unseal
from viewkeeper.sql.stored_text import stored_expression, stored_type
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHY = "the function reflect is refused: it runs code"
RAN = "viewkeeper.test.ran"
CALLS = "('java.lang.System', 'setProperty', 'viewkeeper.test.ran', 'yes')"
PLAIN = "CREATE MATERIALIZED VIEW plain AS SELECT id, cust FROM shop.orders WHERE amount > 0"
SUMMARY = "CREATE MATERIALIZED VIEW sums AS SELECT cust, AVG(amount) AS mean FROM shop.orders GROUP BY cust"
FAMILY = "CREATE MATERIALIZED VIEW levels AS SELECT cust, COUNT(*) AS n FROM shop.orders GROUP BY ROLLUP (cust)"
STORED = (
    "CREATE MATERIALIZED VIEW joined TBLPROPERTIES ('storage' = 'viewcache') AS "
    "SELECT o.id, p.name FROM shop.orders o JOIN shop.people p ON o.cust = p.id"
)


@pytest.fixture(scope="module")
def foreign(spark: "SparkSession") -> "SparkSession":
    """A session that somebody brings: it has all of Spark's functions."""
    return spark.newSession()


@pytest.fixture
def lake(tmp_path: Path, foreign: "SparkSession") -> Iterator[Path]:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER, amount INTEGER);"
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);"
            "INSERT INTO orders VALUES (1, 7, 10), (2, 7, 20); INSERT INTO people VALUES (7, 'Ann')"
        )
    with Warehouse.open(tmp_path / "lake", foreign) as wh:
        wh.add_source("shop", f"sqlite:///{tmp_path}/shop.db", install=True)
        for view in (PLAIN, SUMMARY, FAMILY, STORED):
            wh.create_view(view)
    jvm = foreign.sparkContext._jvm
    assert jvm is not None
    machine = jvm.java.lang.System
    machine.clearProperty(RAN)
    yield tmp_path / "lake"
    assert machine.getProperty(RAN) is None, "code from the catalog ran"


def edit_catalogs(lake: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """What somebody does who makes a catalog by hand; its checksum fits."""
    for file in (lake / "_viewkeeper" / "catalog").iterdir():
        body = unseal(file.read_bytes())
        for view in body["views"].values():
            edit(view)
        file.write_bytes(seal(body))


def with_call(name: str) -> str:
    return f"{name}{CALLS}"


@pytest.mark.parametrize("function", ["java_method", "reflect", "try_reflect", "`REFLECT`"])
@pytest.mark.parametrize("view", ["sums", "joined", "levels"])
def test_shown_expressions(lake: Path, foreign: "SparkSession", view: str, function: str) -> None:
    def edit(told: dict[str, Any]) -> None:
        if "shown" in told["properties"]:
            for column in told["properties"]["shown"]:
                column[1] = f"CAST({with_call(function)} AS {column[2]})"

    edit_catalogs(lake, edit)
    with Warehouse.open(lake, foreign, read_only=True) as wh:
        for read in (
            lambda: wh.sql(f"SELECT * FROM {view}").collect(),
            lambda: wh.read(view).collect(),
            lambda: wh.arrow(view),
            lambda: wh.changes(view, 0).collect(),
        ):
            with pytest.raises(DamagedWarehouse, match=r"no view may have: the function \w+ is refused"):
                read()


@pytest.mark.parametrize("property", ["having", "padded"])
def test_conditions_and_paddings(lake: Path, foreign: "SparkSession", property: str) -> None:
    def edit(told: dict[str, Any]) -> None:
        if "family" in told["properties"]:
            call = with_call("reflect")
            told["properties"][property] = (
                f"{call} = 'x'" if property == "having" else [[name, call] for name in ("cust", "n")]
            )

    edit_catalogs(lake, edit)
    with Warehouse.open(lake, foreign, read_only=True) as wh:
        for read in (lambda: wh.sql("SELECT * FROM levels").collect(), lambda: wh.arrow("levels")):
            with pytest.raises(DamagedWarehouse, match="view levels"):
                read()


@pytest.mark.parametrize("view", ["plain", "sums", "joined"])
def test_definitions(lake: Path, foreign: "SparkSession", view: str) -> None:
    def edit(told: dict[str, Any]) -> None:
        properties = told["properties"]
        for holder in (properties, properties.get("summary"), properties.get("self_maintained")):
            if isinstance(holder, dict) and "sql" in holder:
                holder["sql"] = holder["sql"].replace("SELECT ", f"SELECT {with_call('reflect')} AS odd, ", 1)

    edit_catalogs(lake, edit)
    with Warehouse.open(lake, foreign) as wh:
        verbs: list[Callable[[], object]] = [lambda: wh.audit(view), lambda: wh.reload(view)]
        for verb in verbs:
            with pytest.raises(ViewkeeperError, match=WHY):
                verb()
        # A view that cannot be maintained is halted, and says why.
        with suppress(ViewkeeperError):
            wh.catch_up()
            assert WHY in wh.status().halted[view]


def test_types(lake: Path, foreign: "SparkSession") -> None:
    file = lake / "_viewkeeper" / "sources" / "shop.json"
    body = unseal(file.read_bytes())
    for relation in body["relations"].values():
        relation["types"][0] = f"INT) AS x, {with_call('reflect')} AS y, CAST(NULL AS INT"
    file.write_bytes(seal(body))
    with (
        Warehouse.open(lake, foreign, read_only=True) as wh,
        pytest.raises(DamagedWarehouse, match=r"shop\.json is damaged: \"INT.*is no type"),
    ):
        wh.sql("SELECT cust, COUNT(*) FROM shop.orders GROUP BY cust").collect()


def test_the_command_line_ends_with_2(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def edit(told: dict[str, Any]) -> None:
        for column in told["properties"].get("shown", ()):
            column[1] = with_call("java_method")

    edit_catalogs(lake, edit)
    monkeypatch.setattr("sys.argv", ["viewkeeper", "query", "-w", str(lake), "SELECT * FROM sums"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "the function java_method is refused: it runs code" in said
    assert "hint: " in said


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT java_method{CALLS} FROM plain",
        f"SELECT id FROM plain WHERE `reflect`{CALLS} IS NULL",
        f"SELECT cust FROM (SELECT cust, try_reflect{CALLS} AS x FROM sums)",
        f"SELECT system.builtin.reflect{CALLS} FROM plain",
        "SELECT TRANSFORM(id) USING 'touch ran' AS (x) FROM plain",
        "SELECT * FROM text.`/etc/hostname`",
        "SELECT * FROM plain JOIN csv.`orders.csv` ON true",
    ],
)
def test_queries_do_not_leave_sql(lake: Path, foreign: "SparkSession", query: str) -> None:
    with Warehouse.open(lake, foreign, read_only=True) as wh, pytest.raises(UnsupportedClause):
        wh.sql(query).collect()


def test_our_own_sessions_do_not_know_these_functions(spark: "SparkSession") -> None:
    from pyspark.errors import AnalysisException

    for call in ("reflect", "java_method", "try_reflect", "system.builtin.reflect", "builtin.reflect"):
        with pytest.raises(AnalysisException):
            spark.sql(f"SELECT {call}{CALLS}").collect()
    with pytest.raises(AnalysisException):
        spark.sql("SELECT * FROM text.`/etc/hostname`").collect()


@pytest.mark.parametrize(
    "sql", ["`a` + 1", "CASE WHEN `o.x` > 2 THEN 'it\\'s' END", "CAST(`a` AS DOUBLE) / NULLIF(`n`, 0)"]
)
def test_what_viewkeeper_wrote_stays_as_it_is(sql: str) -> None:
    assert stored_expression(sql) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "current_user()",
        "input_file_name()",
        "my_function(`a`)",
        "(SELECT 1)",
        "rand()",
        "DROP TABLE x",
        "1; SELECT 2",
        "SET x = 1",
        "explode(`a`)",
        "a b c",
    ],
)
def test_no_expression_of_a_view(sql: str) -> None:
    with pytest.raises((UnsupportedClause, SyntaxProblem)):
        stored_expression(sql)


@pytest.mark.parametrize("name", ["INT", "DECIMAL(10, 2)", "TIMESTAMP_NTZ", "ARRAY<STRUCT<a: INT>>", "void", ""])
def test_types_that_are_some(name: str) -> None:
    assert stored_type(name) == name


@pytest.mark.parametrize("name", ["INT) AS x", "INT -- x", "INT /* */", "'x'", "f(x)", "`x`"])
def test_types_that_are_none(name: str) -> None:
    with pytest.raises(SyntaxProblem):
        stored_type(name)
