"""`viewkeeper explain` on one screen: the words that it prints of each kind of view. Over SQLite, without Spark."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.cli.explained_words import show_words
from viewkeeper.cli.main import viewkeeper
from viewkeeper.explaining.explanation import InWords, Measured

DATABASES = {
    "shop": "CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER, amount INTEGER);"
    "INSERT INTO orders VALUES (1, 7, 40), (2, 7, 50), (3, 8, 5)",
    "crm": "CREATE TABLE people (id INTEGER PRIMARY KEY, city TEXT);INSERT INTO people VALUES (7, 'Bern'), (8, 'Chur')",
}
JOINED = "FROM shop.orders o JOIN crm.people p ON o.person = p.id"
VIEWS = {
    "joined": f"AS SELECT o.id, p.city {JOINED}",
    "keyed": f"TBLPROPERTIES ('algorithm' = 't-strobe') AS SELECT o.id, p.city {JOINED}",
    "kept": f"TBLPROPERTIES ('storage' = 'viewcache') AS SELECT o.id, p.city {JOINED}",
    "follows": "AS SELECT id FROM joined WHERE city = 'Bern'",
    "summary": f"AS SELECT city, COUNT(*) AS n, MAX(amount) AS most {JOINED} GROUP BY city",
    "family": "AS SELECT person, amount, COUNT(*) AS n FROM shop.orders GROUP BY CUBE (person, amount)",
}
A_SCREEN = 50
"""lines"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained")
    with Warehouse.open(folder / "lake") as warehouse:
        for name, script in DATABASES.items():
            with closing(sqlite3.connect(folder / f"{name}.db")) as connection:
                connection.executescript(script)
            warehouse.add_source(name, f"sqlite:///{folder}/{name}.db", install=True)
        for name, definition in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {definition}")
    return folder / "lake"


def output(*words: object) -> str:
    done = CliRunner().invoke(viewkeeper, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("view", VIEWS)
def test_every_kind_of_view_is_explained_on_a_screen(lake: Path, view: str) -> None:
    told = output("explain", view, "-w", lake)
    assert told.startswith(f"{view}: a ")
    lines = told.splitlines()
    assert len(lines) <= A_SCREEN
    for heading in ("How it is maintained", "Why so", "What a change costs, if it comes alone"):
        assert heading in lines
    assert "MERGE" not in told
    assert "None" not in told


def test_costs_of_a_join(lake: Path) -> None:
    lines = output("explain", "keyed", "-w", lake).splitlines()
    table = lines[lines.index("What a change costs, if it comes alone") + 1 :]
    assert [line.split("  ")[0] for line in table[:3]] == ["a change of", "shop.orders", "crm.people"]
    assert table[1].split()[1:6] == ["1,", "a", "deletion", "0", "crm"]


def test_costs_of_what_is_stored(lake: Path) -> None:
    lines = output("explain", "kept", "-w", lake).splitlines()
    table = lines[lines.index("What a change costs, if it comes alone") + 1 :]
    assert table[0].split()[3:6] == ["questions", "lookups", "rows"]
    assert table[1].split()[1:7] == ["0", "2", "about", "1", "for", "each"]
    assert table[2].split()[1:5] == ["0", "2", "about", "1.5"]


def test_advice_comes_with_what_does_it(lake: Path) -> None:
    lines = output("explain", "keyed", "-w", lake).splitlines()
    advice = lines[lines.index("What you could change") :]
    assert advice[1].startswith(
        "  - leave 'algorithm' out, or use batched-sweep: it would be complete instead of strong"
    )
    assert "      'algorithm' = 'batched-sweep'" in advice
    assert "      CREATE INDEX orders_by_person ON orders (person)" in advice


def test_full_shows_more_and_says_so(lake: Path) -> None:
    short, full = (output("explain", "summary", "-w", lake, *more) for more in ((), ("--full",)))
    assert "--full shows more: what is stored, its place in the lattice, the SQL, the last refresh" in short
    assert "MERGE INTO" in full
    assert "--full" not in full
    assert full.startswith(short.split("\n\n--full")[0])


def test_json_has_it_all(lake: Path) -> None:
    told = json.loads(output("explain", "joined", "-w", lake, "--json"))["in_words"]
    assert told.keys() == {"how", "why", "costs", "measured", "advice"}
    assert told["costs"][0] == {
        "relation": "shop.orders",
        "questions": 1,
        "questions_of_deletion": 1,
        "asks": ["crm"],
        "rows": 1.0,
        "rows_told": "at most 1 for each",
        "lookups": 0,
        "work": "on the driver, up to 512 MB",
        "transactions_per_hour": None,
    }
    assert told["advice"][0].keys() == {"rule", "change", "effect", "statement"}


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (
            Measured(12, 0.25, 1200, 0.5, 200),
            "12 refreshes of its group in the newest 200 commits with 1,200 transactions, 0.5 questions for "
            "each; one took some 0.25 s",
        ),
        (
            Measured(9, 0.25, 9, 0.0, 12, 0.05),
            "9 refreshes of its lattice in the newest 12 commits with 9 transactions, 0 questions for each; "
            "one took some 0.25 s, of which its tables 0.05 s",
        ),
        (
            Measured(1, 0.25, 1, None, 1, 0.25),
            "1 refresh of its lattice in the last commit with 1 change; one took some 0.25 s",
        ),
    ],
)
def test_what_was_measured_is_shown(capsys: pytest.CaptureFixture[str], measured: Measured, says: str) -> None:
    show_words(InWords(measured=measured), "join")
    assert " ".join(capsys.readouterr().out.split()) == f"measured: {says}"
