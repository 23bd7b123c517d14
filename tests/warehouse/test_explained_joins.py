"""What `explain` says of joins, beside what happens: the questions that it predicts are those that are asked."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.explaining.algorithm_words import COMPUTES, MEANS, READ_THE_VIEW, questions
from viewkeeper.explaining.explanation import InWords, RelationCost
from viewkeeper.explaining.queried_joins import UNKNOWN, expected_rows
from viewkeeper.explaining.summary_explanation import Explanation, Step
from viewkeeper.lake.log.halts import Halts
from viewkeeper.levels import Level
from viewkeeper.mediator.report import GroupReport, Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).resolve().parents[2] / "src" / "viewkeeper" / "algorithms"
DATABASES = {
    "shop": "CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER, item INTEGER);"
    "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO orders VALUES (1, 7, 1), (2, 7, 1), (3, 8, 1); INSERT INTO items VALUES (1, 'pen')",
    "crm": "CREATE TABLE people (id INTEGER PRIMARY KEY, city INTEGER); INSERT INTO people VALUES (7, 5), (8, 5)",
    "geo": "CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO cities VALUES (5, 'Bern')",
}
TWO = "SELECT o.id, p.city FROM shop.orders o JOIN crm.people p ON o.person = p.id"
THREE = "SELECT o.id, c.name FROM shop.orders o JOIN crm.people p ON o.person = p.id JOIN geo.cities c ON p.city = c.id"
AT_ONE_SOURCE = "SELECT o.id, i.name FROM shop.orders o JOIN shop.items i ON o.item = i.id"
TOGETHER = (
    "SELECT o.id, i.name, p.city FROM shop.orders o JOIN shop.items i ON o.item = i.id "
    "JOIN crm.people p ON o.person = p.id"
)


def no_spark() -> Any:
    raise AssertionError("Spark was started")


def write(folder: Path, database: str, script: str) -> None:
    with closing(sqlite3.connect(folder / f"{database}.db")) as connection:
        connection.executescript(f"BEGIN; {script}; COMMIT;")


@pytest.fixture
def wh(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        for name, script in DATABASES.items():
            write(tmp_path, name, script)
            warehouse.add_source(name, f"sqlite:///{tmp_path}/{name}.db", install=True)
        yield warehouse


def create(wh: Warehouse, name: str, select: str, **properties: str) -> None:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    told = f"TBLPROPERTIES ({listed}) " if listed else ""
    wh.create_view(f"CREATE MATERIALIZED VIEW {name} {told}AS {select}")


def words(wh: Warehouse, text: str) -> InWords:
    found = wh.explain(text)
    assert isinstance(found, Explanation)
    return found.in_words


def costs(wh: Warehouse, text: str) -> dict[str, RelationCost]:
    return {cost.relation: cost for cost in words(wh, text).costs}


def asked(wh: Warehouse, folder: Path, database: str, script: str) -> GroupReport:
    """What a transaction makes the one group ask."""
    write(folder, database, script)
    reports: list[Report] = []
    wh.catch_up(watch=reports.append)
    (group,) = reports[-1].groups
    assert group.transactions == 1
    return group


# Questions, predicted and asked

SERVE = [name for name, one in ALGORITHMS.items() if not one.baseline and not one.one_source]


@pytest.mark.parametrize("algorithm", SERVE)
def test_questions_are_as_many_as_explained(wh: Warehouse, tmp_path: Path, algorithm: str) -> None:
    # Of this person and this city the view has nothing, so that it cannot answer by itself.
    write(tmp_path, "crm", "INSERT INTO people VALUES (9, 6)")
    write(tmp_path, "geo", "INSERT INTO cities VALUES (6, 'Rome')")
    create(wh, "v", THREE, algorithm=algorithm, consistency=str(ALGORITHMS[algorithm].levels[Transactions.LOCAL]))
    told = costs(wh, "v")
    inserted = asked(wh, tmp_path, "shop", "INSERT INTO orders VALUES (9, 9, 1)")
    assert inserted.queries == told["shop.orders"].questions
    deleted = asked(wh, tmp_path, "shop", "DELETE FROM orders WHERE id = 9")
    assert deleted.queries == told["shop.orders"].questions_of_deletion
    changed = asked(wh, tmp_path, "crm", "UPDATE people SET city = 6 WHERE id = 8")
    assert changed.queries <= told["crm.people"].questions
    assert told["geo.cities"].questions == told["shop.orders"].questions


@pytest.mark.parametrize(("algorithm", "queries"), [("t-strobe", 0), ("batched-sweep", 2)])
def test_what_the_view_answers_is_explained(wh: Warehouse, tmp_path: Path, algorithm: str, queries: int) -> None:
    """By their keys: of person 7 and city 5 the view has all that the join needs."""
    create(wh, "v", THREE, algorithm=algorithm)
    found = words(wh, "v")
    assert any("the view itself" in line for line in found.how) is (queries == 0)
    assert asked(wh, tmp_path, "shop", "INSERT INTO orders VALUES (9, 7, 1)").queries == queries
    assert {"id": 9, "name": "Bern"} in wh.arrow("v").to_pylist()


def test_rows_are_as_many_as_explained(wh: Warehouse, tmp_path: Path) -> None:
    create(wh, "v", TWO)
    assert costs(wh, "v")["crm.people"].rows_told == UNKNOWN
    create(wh, "everybody", "SELECT id, city FROM crm.people", group="other")
    told = costs(wh, "v")
    assert (told["shop.orders"].rows, told["shop.orders"].rows_told) == (1.0, "at most 1 for each")
    assert (told["crm.people"].rows, told["crm.people"].rows_told) == (1.5, "about 1.5 for each")
    assert told["crm.people"].work.startswith("on the driver")
    wh.drop_view("everybody")
    assert asked(wh, tmp_path, "shop", "INSERT INTO orders VALUES (9, 7, 1)").rows_received == 1


def test_relations_of_one_source_are_joined_there(wh: Warehouse, tmp_path: Path) -> None:
    create(wh, "v", TOGETHER)
    found = words(wh, "v")
    told = {cost.relation: (cost.questions, cost.asks) for cost in found.costs}
    assert told == {
        "shop.orders": (2, ("shop", "crm")),
        "shop.items": (2, ("shop", "crm")),
        "crm.people": (1, ("shop",)),
    }
    assert asked(wh, tmp_path, "shop", "INSERT INTO orders VALUES (9, 7, 1)").queries == 2
    assert asked(wh, tmp_path, "crm", "DELETE FROM people WHERE id = 7").queries == 1
    assert "shop.orders and shop.items are at one source and are joined there first" in found.why[-1]
    # The user's own columns, and not those of local views.
    assert "crm is queried for the rows of crm.people with o.person = p.id" in found.how[1]
    assert {one.statement for one in found.advice if one.rule == "index"} == {
        "CREATE INDEX orders_by_item ON orders (item)",
        "CREATE INDEX orders_by_person ON orders (person)",
    }


def test_a_keyed_algorithm_over_relations_of_one_source(wh: Warehouse, tmp_path: Path) -> None:
    write(tmp_path, "crm", "INSERT INTO people VALUES (9, 6)")
    create(wh, "v", TOGETHER, algorithm="t-strobe")
    told = costs(wh, "v")["shop.orders"]
    assert (told.questions, told.questions_of_deletion) == (2, 1)
    assert asked(wh, tmp_path, "shop", "INSERT INTO orders VALUES (9, 9, 1)").queries == 2
    assert asked(wh, tmp_path, "shop", "DELETE FROM orders WHERE id = 9").queries == 1


def test_one_source(wh: Warehouse, tmp_path: Path) -> None:
    create(wh, "v", AT_ONE_SOURCE, algorithm="eca")
    told = costs(wh, "v")["shop.orders"]
    assert (told.questions, told.questions_of_deletion, told.asks) == (1, 1, ("shop",))
    assert asked(wh, tmp_path, "shop", "INSERT INTO orders VALUES (9, 7, 1)").queries == 1
    assert "stronger-algorithm" in {one.rule for one in words(wh, "v").advice}


def test_one_table(wh: Warehouse, tmp_path: Path) -> None:
    create(wh, "v", "SELECT id FROM shop.orders WHERE person = 7")
    found = words(wh, "v")
    assert [(cost.questions, cost.rows_told) for cost in found.costs] == [(0, "none")]
    assert "No source is queried." in found.how[1]
    assert found.advice == ()
    assert asked(wh, tmp_path, "shop", "INSERT INTO orders VALUES (9, 7, 1)").queries == 0


# Why, and what could be changed


def test_why_it_is_as_it_is(wh: Warehouse) -> None:
    statement = f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({{}}) AS {TWO}"
    by_default = words(wh, f"CREATE MATERIALIZED VIEW v AS {TWO}").why
    assert by_default[0].startswith("complete, because no 'consistency' was requested")
    assert by_default[1].startswith("batched-sweep, because no 'algorithm' was requested")
    asked_level = words(wh, statement.format("'consistency' = 'strong'"))
    assert "'consistency' = 'strong' was requested, and batched-sweep reaches complete" in asked_level.why[0]
    assert "deletions-for-nothing" in {one.rule for one in asked_level.advice}
    asked_both = words(wh, statement.format("'algorithm' = 't-strobe'")).why
    assert asked_both[:2] == (
        f"strong, because that is what t-strobe reaches for local transactions: {MEANS[Level.STRONG]}",
        "t-strobe, because it was requested",
    )


def test_transactions_that_span_sources(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "lake", no_spark) as wh:
        for name, script in DATABASES.items():
            spanning = "CREATE TABLE global_tx (gid TEXT PRIMARY KEY, source TEXT, participants TEXT);"
            write(tmp_path, name, (spanning if name != "geo" else "") + script)
            wh.add_source(name, f"sqlite:///{tmp_path}/{name}.db", install=True)
        statement = f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('algorithm' = '{{}}', 'consistency' = 'weak') AS {TWO}"
        weak, whole = (words(wh, statement.format(name)) for name in ("sweep", "batched-sweep"))
    assert "transactions may span shop and crm" in weak.why[2]
    assert weak.why[2].endswith("they are seen in parts")
    assert whole.why[2].endswith("they are kept whole")
    (stronger,) = (one for one in weak.advice if one.rule == "stronger-algorithm")
    assert "sweep does not keep them whole; it would be complete instead of weak" in stronger.effect
    assert "stronger-algorithm" not in {one.rule for one in whole.advice}


def test_a_join_without_an_equality(wh: Warehouse) -> None:
    by_range = words(
        wh, "CREATE MATERIALIZED VIEW v AS SELECT o.id FROM shop.orders o JOIN crm.people p ON o.id < p.id"
    )
    assert {cost.rows_told for cost in by_range.costs} == {"all of crm.people", "all of shop.orders"}
    assert [one.rule for one in by_range.advice] == ["equality", "equality"]
    crossed = words(wh, "CREATE MATERIALIZED VIEW v AS SELECT o.id FROM shop.orders o CROSS JOIN crm.people p")
    assert crossed.advice == ()


def test_what_auto_would_store_is_advised(wh: Warehouse) -> None:
    (advice,) = (
        one for one in words(wh, f"CREATE MATERIALIZED VIEW v AS {TWO}").advice if "auto" in str(one.statement)
    )
    assert advice.rule == "without-questions"
    assert "shop.orders is looked up by o.person, which is not its key" in advice.effect
    create(wh, "v", TWO, storage="auto")
    kept = words(wh, "v")
    assert [(cost.questions, cost.asks) for cost in kept.costs] == [(0, ()), (0, ())]
    assert "ask-instead" not in {one.rule for one in kept.advice}


def test_a_key_can_be_declared_unless_something_rests_on_there_being_none(wh: Warehouse, tmp_path: Path) -> None:
    write(tmp_path, "crm", "CREATE TABLE notes (person INTEGER, text TEXT)")
    wh.add_source("crm", f"sqlite:///{tmp_path}/crm.db", install=True)
    join = "SELECT o.id, n.text FROM shop.orders o JOIN crm.notes n ON o.person = n.person"
    create(wh, "asking", join)
    statements = [one.statement for one in words(wh, "asking").advice if one.rule == "declare-key"]
    assert statements == ["viewkeeper add-source crm URL --key notes=person"]
    stored = f"CREATE MATERIALIZED VIEW stored TBLPROPERTIES ('storage' = 'viewcache') AS {join}"
    assert "declare-key" in {one.rule for one in words(wh, stored).advice}
    wh.create_view(stored)
    assert "declare-key" not in {one.rule for view in ("asking", "stored") for one in words(wh, view).advice}


# Other kinds


def test_views_over_views(wh: Warehouse) -> None:
    create(wh, "v", TWO)
    create(wh, "w", "SELECT a.id, b.id AS other FROM v a JOIN v b ON a.city = b.city")
    found = words(wh, "w")
    assert [(one.relation, one.questions, one.lookups, one.rows_told) for one in found.costs] == [
        ("v a", 0, 1, "about 3 for each"),
        ("v b", 0, 1, "about 3 for each"),
    ]
    assert "No source is queried." in found.how[-1]


def test_hidden_tables_say_whom_they_serve(wh: Warehouse) -> None:
    create(wh, "kept", TWO, storage="viewcache")
    create(wh, "by_city", "SELECT city, COUNT(*) AS n FROM crm.people GROUP BY city", refresh="manual")
    hidden = {view.view: wh.explain(view.view) for view in wh.status().hidden}
    assert len(hidden) >= 7
    for name, found in hidden.items():
        assert isinstance(found, Explanation)
        assert (found.kind, found.storage) == ("hidden", None), name
        assert "stored for " in found.in_words.how[0] or found.tables, name
    copy = hidden["_vk_kept_copy_0"]
    assert isinstance(copy, Explanation)
    assert copy.in_words.how[0] == (
        "It is stored for kept: it stores a copy of the columns of shop.orders that the view needs."
    )


def test_what_is_loaded_and_what_is_halted(wh: Warehouse) -> None:
    with wh.commit() as commit:
        commit.create("numbers", {"n": "BIGINT"}, rows=MemoryZSet.of(("n",), (1,)))
    loaded = words(wh, "numbers")
    assert "Warehouse.commit()" in loaded.how[0]
    assert (loaded.costs, loaded.advice) == ((), ())
    create(wh, "v", TWO)
    Halts(wh._files.store).add("v", wh._latest().catalog["v"].folder, "crm.people: a column is gone", 0)
    assert words(wh, "v").advice[0].statement == "viewkeeper reload v"


def test_a_source_that_takes_a_job(spark: "SparkSession", tmp_path: Path) -> None:
    write(tmp_path, "shop", DATABASES["shop"])
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "people.csv").write_text("id,city\n7,5\n8,5\n")
    with Warehouse.open(tmp_path / "lake", spark) as wh:
        wh.add_source("shop", f"sqlite:///{tmp_path}/shop.db", install=True)
        url = f"files://{tmp_path}/files?schema.people=id BIGINT, city BIGINT"
        wh.add_source("crm", url, keys={"people": "id"}, install=True)
        found = words(wh, f"CREATE MATERIALIZED VIEW v AS {TWO}")
    work = {cost.relation: cost.work for cost in found.costs}
    assert work["shop.orders"] == "a Spark job for each question to crm"
    assert work["crm.people"].startswith("on the driver")
    (advice,) = (one for one in found.advice if one.rule == "without-questions")
    assert advice.effect.endswith("source crm is a folder of files: each question to it takes a job")


# Words and figures alone


def test_every_algorithm_and_every_level_has_its_words() -> None:
    assert COMPUTES.keys() == ALGORITHMS.keys()
    assert MEANS.keys() == set(Level)


def test_who_reads_the_view() -> None:
    code = {name: (SOURCE / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8") for name in ALGORITHMS}
    # Those that leave it to another file are built upon one that reads it.
    built_upon = ("t_strobe import StrobeWarehouse", "c_strobe import CompleteAnswers")
    reading = {name for name, text in code.items() if "ReadView" in text or any(one in text for one in built_upon)}
    assert reading == set(READ_THE_VIEW)


def test_questions_of_algorithms() -> None:
    assert questions("sweep", 3, 0, 4) == (3, 3)
    assert questions("t-strobe", 3, 1, 3) == (3, 1)
    assert questions("recompute", 3, 0, 4) == (4, 4)
    assert questions("eca", 3, 0, 4) == (1, 1)
    assert questions("eca-key", 3, 0, 4) == (1, 0)
    assert {questions(name, 0, 0, 1) for name in ALGORITHMS if name != "recompute"} == {(0, 0)}


def test_rows_that_are_expected() -> None:
    by_key, by_city, all_of_it = (
        Step("a.r", "a", (), ("r.id",), True),
        Step("a.s", "a", (), ("s.city",)),
        Step("a.t", "a", ()),
    )
    assert expected_rows("sweep", (), None, None) == (0.0, "none")
    assert expected_rows("sweep", (by_key, by_key), None, None) == (2.0, "at most 2 for each")
    assert expected_rows("sweep", (by_key, by_city, by_key), 10, 40) == (9.0, "about 9 for each")
    assert expected_rows("sweep", (by_city,), None, 40) == (None, UNKNOWN)
    assert expected_rows("sweep", (by_city,), 0, 0) == (None, UNKNOWN)
    assert expected_rows("sweep", (by_city, by_city), 10, 40) == (None, UNKNOWN)
    assert expected_rows("sweep", (by_key, all_of_it), 10, 40) == (None, "all of a.t")
    assert expected_rows("recompute", (by_key,), 10, 40) == (None, "all rows of all relations")


def test_what_was_measured(wh: Warehouse, tmp_path: Path) -> None:
    create(wh, "v", TWO)
    assert words(wh, "v").measured is None
    asked(wh, tmp_path, "shop", "INSERT INTO orders VALUES (9, 7, 1)")
    asked(wh, tmp_path, "crm", "DELETE FROM people WHERE id = 8")
    measured = words(wh, "v").measured
    assert measured is not None
    assert (measured.refreshes, measured.updates, measured.questions_per_update) == (2, 2, 1.0)


def test_a_hierarchy_is_advised_until_it_is_declared(wh: Warehouse, tmp_path: Path) -> None:
    write(
        tmp_path,
        "geo",
        "CREATE TABLE stores (id INTEGER PRIMARY KEY, city TEXT, region TEXT);"
        "CREATE TABLE sales (id INTEGER PRIMARY KEY, store INTEGER, day TEXT, qty INTEGER);"
        "INSERT INTO stores VALUES (1, 'Bern', 'West'), (2, 'Bern', 'West'), (3, 'Chur', 'East');"
        "INSERT INTO sales VALUES (1, 1, 'mon', 4), (2, 2, 'mon', 5), (3, 3, 'mon', 6), (4, 3, 'tue', 7)",
    )
    url, joined = f"sqlite:///{tmp_path}/geo.db", "FROM geo.sales f JOIN geo.stores s ON f.store = s.id"
    wh.add_source("geo", url, install=True)
    create(wh, "by_city", f"SELECT city, day, SUM(qty) AS qty {joined} GROUP BY city, day")
    by_region = f"SELECT region, SUM(qty) AS qty {joined} GROUP BY region"
    create(wh, "by_region", by_region)
    (advice,) = (one for one in words(wh, "by_region").advice if one.rule == "hierarchy")
    assert advice.statement == "viewkeeper add-source geo URL --hierarchy stores=city,region"
    assert "would then be computed from that of by_city" in advice.effect
    assert "hierarchy" not in {one.rule for one in words(wh, "by_city").advice}
    wh.add_source("geo", url, hierarchies={"stores": ["city", "region"]}, install=True)
    found = wh.explain("by_region")
    assert isinstance(found, Explanation)
    assert "hierarchy" not in {one.rule for one in found.in_words.advice}
    assert [choice.above for choice in found.tables[0].choices if choice.chosen] == ["by_city"]


# Advice, followed

BY_KEY = "SELECT o.id, p.city FROM shop.orders o JOIN crm.people p ON o.id = p.id"
GROUPED = "SELECT person, COUNT(*) AS n, MAX(item) AS most FROM shop.orders GROUP BY person"
FOLLOWED: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "stronger-algorithm": (TWO, {"algorithm": "t-strobe"}, ()),
    "without-questions": (TWO, {"algorithm": "sweep"}, ("algorithm",)),
    "deletions-for-nothing": (TWO, {"consistency": "weak"}, ()),
    "ask-instead": (BY_KEY, {"storage": "viewcache"}, ()),
    "every-state": (TWO, {"storage": "viewcache", "consistency": "strong"}, ()),
    "every-state of a summary": (GROUPED, {}, ()),
    "once-per-commit": (GROUPED, {"consistency": "complete"}, ()),
    "extremes-at-hand": (GROUPED, {"minmax": "recompute", "core": "stored"}, ()),
}


@pytest.mark.parametrize("case", FOLLOWED)
def test_advice_can_be_followed(wh: Warehouse, case: str) -> None:
    """With the property that it names the view can be created, and the same advice is not given again."""
    select, properties, leave_out = FOLLOWED[case]
    rule = case.partition(" ")[0]

    def statement(name: str, told: dict[str, str]) -> str:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in told.items())
        return f"CREATE MATERIALIZED VIEW {name} {f'TBLPROPERTIES ({listed})' if listed else ''} AS {select}"

    (advice,) = (one for one in words(wh, statement("v", properties)).advice if one.rule == rule)
    assert advice.statement is not None
    key, value = advice.statement.replace("'", "").split(" = ")
    followed = {**{name: told for name, told in properties.items() if name not in leave_out}, key: value}
    assert rule not in {one.rule for one in words(wh, statement("v", followed)).advice}
    wh.create_view(statement("v", followed))
