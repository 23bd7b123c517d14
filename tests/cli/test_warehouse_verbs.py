"""The verbs of the warehouse: what they print, what they write, how they fail."""

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.cli.main import main, viewkeeper
from viewkeeper.lake.log.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = {"id": "BIGINT", "amount": "DECIMAL(20, 10)", "placed": "TIMESTAMP", "note": "STRING", "raw": "BINARY"}
CITIES = {"city": "STRING", "n": "BIGINT"}
PLACED = datetime(2024, 10, 27, 0, 30, 0, 500000, tzinfo=UTC)
FIRST = (1, Decimal("1.5"), PLACED, 'a "b", c', b"\x00\xff")
SECOND = (2, Decimal("12345678.0000000001"), None, "", None)
ORDERS_CSV = [
    "id,amount,placed,note,raw",
    '1,1.5000000000,2024-10-27T00:30:00.5Z,"a ""b"", c",00ff',
    '1,1.5000000000,2024-10-27T00:30:00.5Z,"a ""b"", c",00ff',
    '2,12345678.0000000001,,"",',
]


def at(position: int) -> dict[str, str]:
    return {"shop": f"{position:020d}"}


def orders(*rows: tuple[tuple[Any, ...], int]) -> MemoryZSet:
    return MemoryZSet(tuple(ORDERS), rows)


def cities(*rows: tuple[tuple[Any, ...], int]) -> MemoryZSet:
    return MemoryZSet(tuple(CITIES), rows)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with an appended and a rewritten view in one group, at state 3; made without Spark."""
    path = tmp_path_factory.mktemp("lake")
    with Warehouse.open(path) as warehouse:
        with warehouse.commit() as commit:
            commit.create("orders", ORDERS, rows=orders((FIRST, 1)), vector=at(0))
            commit.create("cities", CITIES, layout="rewritten", rows=cities((("Ulm", 1), 1)))
        with warehouse.commit() as commit:
            commit.state("main", at(1), {"orders": orders((FIRST, 2))})
        with warehouse.commit() as commit:
            commit.state("main", at(2), {"orders": orders((FIRST, -1), (SECOND, 1))})
        with warehouse.commit() as commit:
            commit.state("main", at(3), {"cities": cities((("Ulm", 1), -1), (("Ulm", 3), 1), ((None, 2), 1))})
    return path


@pytest.fixture
def copied(lake: Path, tmp_path: Path) -> Path:
    """A copy of it, to be written to."""
    return Path(shutil.copytree(lake, tmp_path / "copied"))


def call(*words: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(viewkeeper, [str(word) for word in words], input=stdin, catch_exceptions=False)


def output(*words: object, stdin: str | None = None) -> str:
    done = call(*words, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done.stdout


# status and states


def test_status_as_a_table(lake: Path) -> None:
    told = output("status", "-w", lake).splitlines()
    assert told[0] == f"warehouse  {lake}"
    assert told[1].startswith("commit     4, made 20")
    assert told[1].endswith(" UTC; 5 retained")
    assert told[2] == "readers    0 pinned"
    headings, orders_line, cities_line = (" ".join(line.split()) for line in sorted(told[4:], reverse=True))
    assert headings == "view group layout state rows files size pending vector"
    assert orders_line.startswith("orders main appended 3 3 3 ")
    assert orders_line.endswith(" KiB 3 rows, 2 files shop 3")
    assert cities_line.startswith("cities main rewritten 3 2 1 ")
    assert cities_line.endswith(" - shop 3")


def test_status_as_json(lake: Path) -> None:
    told = json.loads(output("status", "-w", lake, "--json"))
    assert told["path"] == str(lake)
    assert (told["commit"], told["commits"], told["readers"]) == (4, 5, 0)
    assert datetime.fromisoformat(told["time"]).tzinfo is not None
    cities_told, orders_told = told["views"]
    assert cities_told["layout"] == "rewritten"
    assert (
        orders_told.items()
        >= {
            "view": "orders",
            "group": "main",
            "state": 3,
            "oldest": 0,
            "vector": at(3),
            "rows": 3,
            "files": 3,
            "pending_files": 2,
            "pending_rows": 3,
        }.items()
    )


def test_status_tells_of_families_and_hidden_tables(copied: Path) -> None:
    before = json.loads(output("status", "-w", copied, "--json"))
    with Warehouse.open(copied, create=False) as warehouse, warehouse.commit() as commit:
        for name in ("by_city", "_vk_all"):
            family = {"family": "cube", "padded": [["city", "`city`"], ["n", "`n`"]]}
            commit.create(name, CITIES, rows=cities((("Ulm", 1), 2)), properties=family)
        commit.create("_vk_node", CITIES, rows=cities((("Bonn", 1), 1)))
    told = json.loads(output("status", "-w", copied, "--json"))
    assert [view["view"] for view in told["views"]] == ["by_city", "cities", "orders"]
    assert told["views"][1:] == before["views"]
    assert [(view["view"], view["rows"], view["family"]) for view in told["hidden"]] == [
        ("_vk_all", 2, "cube"),
        ("_vk_node", 1, None),
    ]
    lines = output("status", "-w", copied).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("family"))
    assert lines[place].split() == ["family", "group", "tables", "state", "rows", "size"]
    assert lines[place + 1].split()[:5] == ["cube", "main", "2", "3", "4"]
    hidden = [line for line in lines if "hidden" in line]
    assert len(hidden) == 1
    assert re.fullmatch(r"2 hidden tables, \d+\.\d KiB", hidden[0])
    assert not [line for line in lines if "_vk_" in line]


def test_status_of_a_new_warehouse(tmp_path: Path) -> None:
    Warehouse.open(tmp_path / "new").close()
    assert "views      none yet" in output("status", "-w", tmp_path / "new")


def test_the_warehouse_is_named_by_option_variable_or_folder(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = output("status", "-w", lake)
    monkeypatch.chdir(lake)
    assert output("status") == expected
    monkeypatch.chdir("/")
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", str(lake))
    assert output("status") == expected


def test_states(lake: Path) -> None:
    headings, *lines = output("states", "orders", "-w", lake).splitlines()
    assert headings.split() == ["state", "rows", "commit", "time", "vector"]
    assert [line.split()[:3] for line in lines] == [["0", "1", "1"], ["1", "3", "2"], ["2", "3", "3"], ["3", "3", "4"]]
    assert [line.partition("UTC")[2].strip() for line in lines] == ["shop 0", "shop 1", "shop 2", "shop 3"]


def test_states_of_a_family(copied: Path) -> None:
    with Warehouse.open(copied, create=False) as warehouse, warehouse.commit() as commit:
        for number, name in enumerate(("north", "south"), start=1):
            rows = cities((("Ulm", 1), number))
            commit.create(name, CITIES, rows=rows, properties={"family": "all", "padded": [["n", "`n`"]]})
    _, line = output("states", "all", "-w", copied).splitlines()
    assert line.split()[:3] == ["3", "3", "5"]


def test_states_as_json_and_only_the_last(lake: Path) -> None:
    told = json.loads(output("states", "cities", "-w", lake, "--last", "1", "--json"))
    assert told["view"] == "cities"
    (state,) = told["states"]
    assert state.pop("time") == json.loads(output("status", "-w", lake, "--json"))["time"]
    assert state == {"state": 3, "vector": at(3), "rows": 2, "commit": 4}


# query and changes


def test_query_as_a_table(lake: Path, spark: "SparkSession") -> None:
    told = output("query", "SELECT city, n, n / 2.0 AS half FROM cities ORDER BY n", "-w", lake)
    assert told.splitlines() == [
        "city  n      half",
        "NULL  2  1.000000",
        "Ulm   3  1.500000",
        "",
        "2 rows",
    ]


def test_a_table_says_that_there_are_more_rows(lake: Path, spark: "SparkSession") -> None:
    assert output("query", "SELECT id FROM range(100)", "-w", lake).endswith("\n99\n\n100 rows\n")
    assert "the first 100 rows; --limit N shows more" in output("query", "SELECT id FROM range(101)", "-w", lake)
    assert "the first 1 row; " in output("query", "SELECT id FROM range(101)", "--limit", 1, "-w", lake)


def test_csv_is_exact(lake: Path, spark: "SparkSession") -> None:
    assert output("query", "SELECT * FROM orders ORDER BY id", "--format", "csv", "-w", lake).splitlines() == ORDERS_CSV


def test_json_is_exact(lake: Path, spark: "SparkSession") -> None:
    text = output("query", "SELECT * FROM orders ORDER BY id DESC LIMIT 2", "--format", "json", "-w", lake)
    assert json.loads(text) == [
        {"id": 2, "amount": "12345678.0000000001", "placed": None, "note": "", "raw": None},
        {
            "id": 1,
            "amount": "1.5000000000",
            "placed": "2024-10-27T00:30:00.5Z",
            "note": 'a "b", c',
            "raw": "00ff",
        },
    ]


VALUES: list[tuple[str, str, object]] = [
    # an expression, in CSV, in JSON
    ("9223372036854775807", "9223372036854775807", 9223372036854775807),
    ("FLOAT('0.1')", "0.1", 0.1),
    ("DOUBLE('0.1') + DOUBLE('0.2')", "0.30000000000000004", 0.30000000000000004),
    ("DOUBLE('1e300')", "1.0E300", 1e300),
    ("DOUBLE('-Infinity')", "-Infinity", "-Infinity"),
    ("true", "true", True),
    ("DATE '2024-02-29'", "2024-02-29", "2024-02-29"),
    ("TIMESTAMP '0001-01-01 00:00:00'", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ("TIMESTAMP '+20000-01-01 00:00:00'", "+20000-01-01T00:00:00Z", "+20000-01-01T00:00:00Z"),
    ("TIMESTAMP_NTZ '2024-01-01 00:00:00.000001'", "2024-01-01T00:00:00.000001", "2024-01-01T00:00:00.000001"),
    ("CAST(0 AS DECIMAL(38, 18))", "0.000000000000000000", "0.000000000000000000"),
    ("array(1, NULL)", '"[1,null]"', [1, None]),
    ("'line\nbreak'", '"line\nbreak"', "line\nbreak"),
    ("'⋈'", "⋈", "⋈"),
    ("NULL", "", None),
]


def test_every_kind_of_value(lake: Path, spark: "SparkSession") -> None:
    query = "SELECT " + ", ".join(f"{sql} AS v{number}" for number, (sql, _, _) in enumerate(VALUES))
    told = output("query", query, "--format", "csv", "-w", lake)
    assert told.partition("\n")[2] == ",".join(csv for _, csv, _ in VALUES) + "\n"
    (row,) = json.loads(output("query", query, "--format", "json", "-w", lake))
    assert list(row.values()) == [as_json for _, _, as_json in VALUES]


def test_no_rows(lake: Path, spark: "SparkSession") -> None:
    query = "SELECT id, amount FROM orders WHERE false"
    assert output("query", query, "--format", "csv", "-w", lake) == "id,amount\n"
    assert json.loads(output("query", query, "--format", "json", "-w", lake)) == []
    assert output("query", query, "-w", lake).splitlines() == ["id  amount", "", "0 rows"]


def test_query_from_standard_input_and_from_a_file(lake: Path, spark: "SparkSession", tmp_path: Path) -> None:
    query = "SELECT COUNT(*) AS count FROM orders;"
    (tmp_path / "count.sql").write_text(query, encoding="utf-8")
    for words, stdin in ((["-"], query), (["--file", tmp_path / "count.sql"], None)):
        assert output("query", *words, "--format", "csv", "-w", lake, stdin=stdin) == "count\n3\n"


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_output_goes_to_a_file(lake: Path, spark: "SparkSession", tmp_path: Path, form: str) -> None:
    words = ("query", "SELECT city FROM cities WHERE n = 3", "--format", form, "-w", lake)
    shown = output(*words)
    assert output(*words, "--output", tmp_path / "rows") == ""
    assert (tmp_path / "rows").read_text() == shown
    assert os.listdir(tmp_path) == ["rows"]


def test_the_name_of_the_file_says_its_format(lake: Path, spark: "SparkSession", tmp_path: Path) -> None:
    for name in ("rows.parquet", "rows.CSV", "rows.json", "rows.txt"):
        words = ["query", "SELECT city FROM cities WHERE n = 3", "--output", str(tmp_path / name), "-w", str(lake)]
        done = CliRunner().invoke(viewkeeper, words, catch_exceptions=False)
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr.splitlines()[-1] == f"written: {tmp_path / name}"
    (city,) = pq.ParquetFile(tmp_path / "rows.parquet").read()["city"].to_pylist()
    assert (tmp_path / "rows.CSV").read_text() == f"city\n{city}\n"
    assert json.loads((tmp_path / "rows.json").read_text()) == [{"city": city}]
    assert (tmp_path / "rows.txt").read_text().splitlines()[:2] == ["city", city]


def test_parquet_is_one_exact_file(lake: Path, spark: "SparkSession", tmp_path: Path) -> None:
    words = ("query", "SELECT id, amount, placed FROM orders ORDER BY id", "--format", "parquet", "-w", lake)
    for limit, ids in ((3, [1, 1, 2]), (1, [1])):
        assert output(*words, "--limit", limit, "--output", tmp_path / "rows.parquet") == ""
        rows = pq.ParquetFile(tmp_path / "rows.parquet").read()
        assert rows["id"].to_pylist() == ids
    assert rows.to_pylist() == [{"id": 1, "amount": Decimal("1.5"), "placed": PLACED}]
    assert os.listdir(tmp_path) == ["rows.parquet"]


def test_changes(lake: Path, spark: "SparkSession") -> None:
    told = output("changes", "orders", "--since", 0, "--until", 2, "--format", "csv", "-w", lake).splitlines()
    assert told == [
        ORDERS_CSV[0] + ",_vk_weight,_vk_state",
        ORDERS_CSV[1] + ",2,1",
        ORDERS_CSV[1] + ",-1,2",
        ORDERS_CSV[3] + ",1,2",
    ]
    assert output("changes", "cities", "--since", 2, "-w", lake).splitlines() == [
        "city  n  _vk_weight  _vk_state",
        "NULL  2           1          3",
        "Ulm   1          -1          3",
        "Ulm   3           1          3",
        "",
        "3 rows",
    ]
    assert json.loads(output("changes", "cities", "--since", 0, "--until", 1, "--format", "json", "-w", lake)) == []


# compact, vacuum, publish


def test_compact(copied: Path, spark: "SparkSession") -> None:
    before = output("query", "SELECT * FROM orders ORDER BY id", "--format", "csv", "-w", copied)
    assert json.loads(output("compact", "orders", "-w", copied, "--json")) == {"compacted": ["orders"]}
    _, told = json.loads(output("status", "-w", copied, "--json"))["views"]
    assert (told["pending_rows"], told["rows"]) == (0, 3)
    assert output("query", "SELECT * FROM orders ORDER BY id", "--format", "csv", "-w", copied) == before
    assert output("compact", "-w", copied) == "there was nothing to compact\n"


def test_vacuum(copied: Path) -> None:
    everything = ("vacuum", "-w", copied, "--retention", "0", "--grace", "0 s")
    there = sorted(copied.rglob("*.parquet"))
    would = json.loads(output(*everything, "--dry-run", "--json"))
    assert would.pop("dry_run") is True
    assert would["files"] > 0
    assert would["oldest"] == {"cities": 3, "orders": 3}
    assert sorted(copied.rglob("*.parquet")) == there
    assert output(*everything, "--dry-run").splitlines()[1:] == [
        f"{view}: state 3 would be the oldest that can be read" for view in ("cities", "orders")
    ]
    assert output(*everything).splitlines()[0].startswith(f"deleted {would['files']} file")
    assert len(list(copied.rglob("*.parquet"))) < len(there)
    assert [state["state"] for state in json.loads(output("states", "cities", "-w", copied, "--json"))["states"]] == [3]


def test_publish(lake: Path, spark: "SparkSession", tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    told = json.loads(output("publish", "orders", folder, "-w", lake, "--state", "1", "--json"))
    assert told == {"view": "orders", "state": 1, "folder": str(folder)}
    assert output("publish", "orders", folder, "-w", lake) == f"published state 3 of orders to {folder}\n"
    for version, notes in ((0, [FIRST[3]] * 3), (1, [SECOND[3], FIRST[3], FIRST[3]])):
        table = DeltaTable(folder, version=version)
        rows = [row for file in table.file_uris() for row in pq.ParquetFile(file).read().to_pylist()]
        assert sorted(row["note"] for row in rows) == sorted(notes)
        assert rows[0].keys() == ORDERS.keys()


# Bad input

Fails = Callable[..., str]


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fails:
    """Runs words that must fail with exit code 2, without a trace; what is said."""

    def run(*words: object) -> str:
        monkeypatch.setattr("sys.argv", ["viewkeeper", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr().err
        assert stop.value.code == 2, said
        assert "Traceback" not in said
        assert "\tat " not in said
        return said

    return run


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["states", "ordres"], ["no view 'ordres'", "it has: cities, orders"]),
        (["changes", "ordres", "--since", "0"], ["no view 'ordres'", "it has: cities, orders"]),
        (["compact", "ordres"], ["no view 'ordres'", "it has: cities, orders"]),
        (["path", "ordres"], ["no view 'ordres'", "it has: cities, orders"]),
        (["publish", "ordres", "no/such"], ["no view 'ordres'", "it has: cities, orders"]),
        (["publish", "orders", "no/such", "--state", "9"], ["no state 9 of orders", "viewkeeper states orders"]),
        (["changes", "orders", "--since", "9"], ["no state 9 of orders", "viewkeeper states orders"]),
        (["changes", "orders", "--since", "2", "--until", "1"], ["state 1 of orders is before state 2"]),
        (["changes", "orders"], ["--since", "--help says more"]),
        (["states", "orders", "--last", "0"], ["--last", "x>=1"]),
        (["vacuum", "--retention", "soon"], ["'soon' is not a duration", "'7 days'"]),
        (["vacuum", "--grace", "-1 s"], ["'-1 s' is not a duration"]),
        (["query"], ["there is no query", "--file"]),
        (["query", "SELECT 1", "--file", "q.sql"], ["one query too many"]),
        (["query", "--file", "no/such.sql"], ["cannot read no/such.sql", "No such file"]),
        (["query", "SELEC 1 FROM"], ["not SQL"]),
        (["query", "DROP TABLE orders"], ["only one SELECT"]),
        (["query", "SELECT 1; SELECT 2"], ["only one SELECT"]),
        (["query", "SELECT 1", "--format", "parquet"], ["--output"]),
        (["query", "SELECT 1", "--output", "no/such/rows.csv"], ["no folder", "no/such", "make it"]),
        (["query", "SELECT 1", "--output", "."], ["it is a folder", "name a file"]),
        (["query", "SELECT 1", "--format", "excel"], ["parquet"]),
    ],
)
def test_bad_input_is_explained(lake: Path, fails: Fails, words: list[str], says: list[str]) -> None:
    """None of these needs Spark, and none starts it."""
    said = fails(*words, "-w", lake)
    assert [text for text in says if text not in said] == []


@pytest.mark.parametrize("verb", ["status", "vacuum", "compact", "query SELECT", "states v", "publish v f"])
def test_no_warehouse_there(tmp_path: Path, fails: Fails, verb: str) -> None:
    said = fails(*verb.split(), "-w", tmp_path)
    assert f"{tmp_path} is not a warehouse" in said
    assert "with -w, or in VIEWKEEPER_WAREHOUSE" in said
    assert os.listdir(tmp_path) == [], "nothing was made of it"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT nope FROM orders", ["`nope` cannot be resolved", "correct the query"]),
        ("SELECT * FROM ordres", ["ordres", "did you mean orders? views of this warehouse: cities, orders"]),
        ("SELECT 1 / (id - 1) FROM orders", ["running the query", "DIVIDE_BY_ZERO", "leave out the rows"]),
        ("SELECT assert_true(id < 50) FROM range(0, 100, 1, 4)", ["running the query", "id"]),
        ("SELECT id, id FROM orders", ["two columns are named 'id'", "AS"]),
    ],
)
def test_queries_that_fail_in_spark(
    lake: Path, spark: "SparkSession", fails: Fails, query: str, says: list[str], tmp_path: Path
) -> None:
    said = fails("query", query, "--format", "json", "--output", tmp_path / "rows", "-w", lake)
    assert [text for text in says if text not in said] == []
    assert os.listdir(tmp_path) == [], "half a result is none"


def test_a_missing_data_file_is_named(copied: Path, spark: "SparkSession", fails: Fails) -> None:
    gone = next((copied / "views" / "orders").glob("delta-*.parquet"))
    gone.unlink()
    said = fails("query", "SELECT * FROM orders", "-w", copied)
    assert f"{gone} is missing" in said
    assert "backup" in said


def test_a_second_writer_is_told_of_the_first(copied: Path, fails: Fails) -> None:
    with Warehouse.open(copied):
        for verb in ("compact", "vacuum"):
            said = fails(verb, "-w", copied)
            assert f"{copied} is being written by process {os.getpid()} on " in said
            assert "stop it first" in said
        assert "commit     4" in output("status", "-w", copied), "reading never waits"


@pytest.mark.parametrize("refusal", [errno.EROFS, errno.EACCES])
def test_a_warehouse_that_may_only_be_read_can_be_read(
    copied: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, refusal: int, tmp_path: Path
) -> None:
    pins = copied / "_viewkeeper" / "pins"
    pins.mkdir(exist_ok=True)
    (pins / "dead.json").write_text(
        json.dumps({"commit": 4, "until": "2000-01-01T00:00:00+00:00", "host": "h", "pid": 1})
    )

    def refuse(*_: object, **__: object) -> None:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(LocalStore, "_temporary", refuse)
    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    assert "readers    0 pinned" in output("status", "-w", copied)
    assert output("query", "SELECT n FROM cities WHERE n = 3", "--format", "csv", "-w", copied) == "n\n3\n"


def test_a_copy_cannot_be_published_just_anywhere(copied: Path, fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    for folder, says in (
        (copied / "views" / "mine", "inside the warehouse"),
        (tmp_path / "mine", "not empty, and not a Delta table"),
        (tmp_path / "mine" / "file", "is a file, and a Delta table is a folder"),
    ):
        assert says in fails("publish", "orders", folder, "-w", copied)


def test_a_folder_that_cannot_be_made(lake: Path, fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"{tmp_path / 'file' / 'copy'}: Not a directory" in fails(
        "publish", "orders", tmp_path / "file/copy", "-w", lake
    )


def test_an_output_that_cannot_be_written(lake: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    said = fails("query", "SELECT 1", "--output", lake.parent / "rows.csv", "-w", lake)
    assert f"cannot write {lake.parent / 'rows.csv'}: Permission denied" in said


def test_errors_are_data_with_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["viewkeeper", "status", "-w", str(tmp_path), "--json"])
    with pytest.raises(SystemExit):
        main()
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "not-a-warehouse"


def test_our_own_mistakes_have_an_exit_code_of_their_own(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Warehouse, "status", lambda self, **_: 1 / 0)
    monkeypatch.setattr("sys.argv", ["viewkeeper", "status", "-w", str(lake)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 70
    said = capsys.readouterr().err
    assert "a mistake in viewkeeper: ZeroDivisionError" in said
    assert "Traceback" not in said
    monkeypatch.setenv("VIEWKEEPER_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main()


def test_path_names_the_folder_that_another_reader_opens(lake: Path) -> None:
    from deltalake import DeltaTable

    folder = output("path", "cities", "-w", lake).strip()
    assert json.loads(output("path", "Cities", "-w", lake, "--json")) == {"view": "Cities", "path": folder}
    assert DeltaTable(folder).to_pyarrow_dataset().count_rows() == 2
