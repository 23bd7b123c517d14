"""Every change that SQLite makes to a table is captured, however it is written."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from exactness import Recorded, matching, whole

from viewkeeper.clock import Random, seeded
from viewkeeper.sources.base import Disruption, Request
from viewkeeper.sources.sqlite import SqliteSource

Opened = Callable[[str], tuple[sqlite3.Connection, SqliteSource]]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """A database with this schema, captured, and a connection of a user."""
    things: list[sqlite3.Connection | SqliteSource] = []

    def make(schema: str) -> tuple[sqlite3.Connection, SqliteSource]:
        user = sqlite3.connect(tmp_path / "a.db", isolation_level=None, timeout=30)
        user.executescript(schema)
        things.append(user)
        source = SqliteSource(Request("s", f"sqlite:///{tmp_path / 'a.db'}", "w1"))
        things.append(source)
        source.install()
        return user, source

    yield make
    for thing in reversed(things):
        thing.close()


SCHEMAS = {
    "rowid": "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, b INT)",
    "text key": "CREATE TABLE t (id TEXT PRIMARY KEY, a INT, b INT, UNIQUE (a, b))",
    "without rowid": "CREATE TABLE t (id TEXT COLLATE NOCASE, a INT, b INT UNIQUE, PRIMARY KEY (id, a)) WITHOUT ROWID",
    "bag": "CREATE TABLE t (id INT, a INT, b INT)",
    "partial": "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, b INT);"
    "CREATE UNIQUE INDEX one ON t (a) WHERE b > 2 -- or none",
    "replacing": "CREATE TABLE t (id INT UNIQUE ON CONFLICT REPLACE, a INT NOT NULL DEFAULT 3 UNIQUE, b INT)",
    "tree": "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT UNIQUE, b INT REFERENCES t (id) ON DELETE SET NULL)",
    "cascade": "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT UNIQUE, b INT REFERENCES t (id) ON DELETE CASCADE)",
    "generated": "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, b INT, c INT AS (a % 4) STORED UNIQUE, "
    "d INT AS (b + 1))",
    "trigger": "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT UNIQUE, b INT); CREATE TRIGGER mine AFTER INSERT ON t "
    "WHEN NEW.b > 3 BEGIN UPDATE t SET b = 0 WHERE id = NEW.id; DELETE FROM t WHERE a = NEW.a + 1; END",
}
NUMBERS = ["rowid", "bag", "partial", "replacing", "tree", "cascade", "generated", "trigger"]


def random_statement(random: Random, schema: str) -> tuple[str, tuple[object, ...]]:
    def value() -> object:
        number = random.randrange(7)
        return number if schema in NUMBERS or random.random() < 0.3 else f"{'xX'[number % 2]}{number}"

    a = random.randrange(7) if random.random() < 0.9 else None
    b = random.randrange(7)
    how = random.choice(["", " OR REPLACE", " OR IGNORE", " OR FAIL", " OR REPLACE"])
    match random.randrange(8):
        case 0 | 1 | 2:
            return f"INSERT{how} INTO t (id, a, b) VALUES (?, ?, ?)", (value(), a, b)
        case 3:
            return "INSERT INTO t (id, a, b) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET b = b + 1", (value(), a, b)
        case 4 | 5:
            column = random.choice(["id", "a", "b"])
            return f"UPDATE{how} t SET {column} = ? WHERE a = ? OR b = ?", (value() if column == "id" else a, a, b)
        case 6:
            return "DELETE FROM t WHERE b = ?", (b,)
        case _:
            return (
                ("DELETE FROM t", ())
                if random.random() < 0.1
                else (f"INSERT{how} INTO t (id, a) SELECT id, b FROM t", ())
            )


@pytest.mark.parametrize("recursive", ["on", "off"])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_any_statement_does_is_in_the_stream(opened: Opened, schema: str, recursive: str) -> None:
    user, source = opened(SCHEMAS[schema])
    user.execute(f"PRAGMA recursive_triggers = {recursive}")
    user.execute("PRAGMA foreign_keys = on")
    user.execute("PRAGMA synchronous = off")
    relation = source.relations["s.t"]
    random = seeded(5)
    with Recorded(source) as recorded:
        for number in range(60):
            statement, values = random_statement(random, schema)
            undone = random.random() < 0.1
            user.execute("SAVEPOINT here")
            with suppress(sqlite3.IntegrityError):
                user.execute(statement, values)
            if undone:
                user.execute("ROLLBACK TO here")
            user.execute("RELEASE here")
            if number % 25 == 24:
                user.execute("VACUUM")
            if number % 10 == 0:
                recorded.read(whole(relation), matching(relation, "b", 1, 2))
        recorded.catch_up()
        recorded.read(whole(relation))
    assert not [event for event in recorded.events if isinstance(event, Disruption)]
    recorded.check()
    chosen = ", ".join(relation.columns)
    assert recorded.contents["s.t"] == Counter(user.execute(f"SELECT {chosen} FROM t").fetchall())
    assert any(transaction.changes for transaction in recorded.transactions)
