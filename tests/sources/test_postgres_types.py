"""Values of every type are the same in the stream and in readings, and what cannot be kept is refused by name."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from exactness import Recorded, matching, operand, read, whole
from postgres_server import PostgresServer
from postgres_tables import Database, a_database

from viewkeeper.errors import UnsupportedType
from viewkeeper.messages import Fetch
from viewkeeper.sql.one_nan import NAN

MOMENT = datetime(2024, 2, 29, 11, 30, 0, 5, tzinfo=UTC)

KEPT: list[tuple[str, str, list[tuple[str, Any]]]] = [
    ("boolean", "BOOLEAN", [("true", True), ("false", False)]),
    ("smallint", "SMALLINT", [("-32768", -32768)]),
    ("int", "INT", [("2147483647", 2147483647)]),
    ("bigint", "BIGINT", [("-9223372036854775808", -(2**63))]),
    ("oid", "BIGINT", [("4294967295", 2**32 - 1)]),
    ("real", "FLOAT", [("0.1", 0.10000000149011612), ("'NaN'", NAN), ("'-Infinity'", float("-inf"))]),
    ("double precision", "DOUBLE", [("0.1", 0.1), ("1e-300", 1e-300), ("'NaN'", NAN), ("'Infinity'", float("inf"))]),
    ("numeric(10, 2)", "DECIMAL(10, 2)", [("1.1", Decimal("1.10")), ("-99999999.99", Decimal("-99999999.99"))]),
    ("numeric(38, 38)", "DECIMAL(38, 38)", [("0." + "1" * 38, Decimal("0." + "1" * 38))]),
    ("numeric(5)", "DECIMAL(5, 0)", [("12345", Decimal(12345))]),
    ("numeric(3, -2)", "DECIMAL(5, 0)", [("12345", Decimal(12300))]),
    ("numeric(2, 4)", "DECIMAL(4, 4)", [("0.0012", Decimal("0.0012"))]),
    ("numeric", "STRING", [("1.10", "1.10"), ("'NaN'", "NaN"), ("1e40", "1" + "0" * 40)]),
    ("numeric(50, 3)", "STRING", [("1.1", "1.100")]),
    ("text", "STRING", [("''", ""), ("'Zürich 🚲 ''q'' \\ x'", "Zürich 🚲 'q' \\ x"), ("E'a\\nb'", "a\nb")]),
    ("varchar(5)", "STRING", [("'a '", "a ")]),
    ("char(5)", "STRING", [("'ab'", "ab"), ("' '", "")]),
    ("bytea", "BINARY", [("'\\x00ff'", b"\x00\xff"), ("''", b"")]),
    ("date", "DATE", [("'0001-01-01'", date(1, 1, 1)), ("'9999-12-31'", date(9999, 12, 31))]),
    ("timestamp", "TIMESTAMP_NTZ", [("'2024-02-29 11:30:00.000005'", MOMENT.replace(tzinfo=None))]),
    ("timestamp(0)", "TIMESTAMP_NTZ", [("'2024-02-29 11:30'", datetime(2024, 2, 29, 11, 30))]),
    ("timestamptz", "TIMESTAMP", [("'2024-02-29 17:15:00.000005+05:45'", MOMENT)]),
    ("time", "STRING", [("'24:00'", "24:00:00")]),
    ("interval", "STRING", [("'1 day 2 hours'", "P1DT2H")]),
    ("uuid", "STRING", [("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
    ("json", "STRING", [("'{\"a\":  1}'", '{"a":  1}')]),
    ("jsonb", "STRING", [("'{\"a\":  1}'", '{"a": 1}')]),
    ("inet", "STRING", [("'10.0.0.1/8'", "10.0.0.1/8")]),
    ("mood", "STRING", [("'sad'", "sad")]),
    ("positive", "INT", [("7", 7)]),
    ("price", "DECIMAL(8, 2)", [("7", Decimal("7.00"))]),
    ("int[]", "STRING", [("'{1,NULL,3}'", "{1,NULL,3}")]),
    ("int4range", "STRING", [("'[1,5]'", "[1,6)")]),
    ("bit(3)", "STRING", [("B'101'", "101")]),
]

TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN price AS numeric(8, 2);
CREATE TYPE pair AS (a int, b text);
"""


@pytest.fixture(scope="module")
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    with a_database(postgres_server, TYPES, "types") as database:
        # What a database, its roles and its locale make of values must not matter.
        database.execute("ALTER DATABASE types SET timezone = 'Asia/Kathmandu'")
        database.execute("ALTER DATABASE types SET datestyle = 'German, DMY'")
        database.execute("ALTER DATABASE types SET bytea_output = 'escape'")
        database.execute("ALTER DATABASE types SET extra_float_digits = -5")
        database.execute("ALTER DATABASE types SET intervalstyle = 'postgres_verbose'")
        database.execute("ALTER DATABASE types SET statement_timeout = '5s'")
        yield database


def test_stream_and_readings_give_the_same_values(database: Database) -> None:
    columns = ", ".join(f"c{number} {type}" for number, (type, _, _) in enumerate(KEPT))
    database.execute(f"DROP TABLE IF EXISTS kept; CREATE TABLE kept (id int, {columns})")
    longest = max(len(values) for _, _, values in KEPT)
    expected = []
    for number in range(longest):
        chosen = [values[number % len(values)] for _, _, values in KEPT]
        expected.append((number, *(value for _, value in chosen)))
    expected.append((longest, *(None for _ in KEPT)))
    with database.installed("kept") as source, Recorded(source) as recorded:
        relation = source.relations["pg.kept"]
        assert relation.types == ("INT", *(spark for _, spark, _ in KEPT))
        for number in range(longest):
            chosen = [values[number % len(values)] for _, _, values in KEPT]
            database.execute(f"INSERT INTO kept VALUES ({number}, {', '.join(text for text, _ in chosen)})")
        database.execute(f"INSERT INTO kept (id) VALUES ({longest})")
        _, (bag,) = read(source, whole(relation))
        recorded.catch_up()
        assert set(bag) == set(expected)
        assert [change.row for one in recorded.transactions for change in one.changes] == expected
        for row in expected:
            for value, kept in zip(row, next(kept for kept in bag if kept == row), strict=True):
                assert type(value) is type(kept)
        for number, (_, _, values) in enumerate(KEPT):
            wanted = [value for _, value in values]
            _, (found,) = read(source, matching(relation, f"c{number}", *wanted))
            assert {row[number + 1] for row in found} == set(wanted), KEPT[number]
        database.execute("UPDATE kept SET id = id + 100")
        database.execute("DELETE FROM kept")
        recorded.catch_up()
    recorded.check()
    assert recorded.contents == {"pg.kept": {}}


@pytest.mark.parametrize("type", ["money", "pair", "pair[]", "regclass", "money[]"])
def test_a_type_that_cannot_be_kept_is_refused_by_name(database: Database, type: str) -> None:
    database.execute(f"DROP TABLE IF EXISTS refused; CREATE TABLE refused (id int, odd {type})")
    with pytest.raises(UnsupportedType, match=r"pg\.refused\.odd has the type"):
        database.source("refused")
    database.execute("DROP TABLE refused")


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("date", "infinity"),
        ("date", "0044-03-15 BC"),
        ("timestamp", "-infinity"),
        ("timestamptz", "294276-01-01"),
        ("numeric(5, 2)", "NaN"),
    ],
)
def test_a_value_that_cannot_be_represented_is_a_clear_error(database: Database, type: str, value: str) -> None:
    database.execute(
        f"DROP TABLE IF EXISTS odd; CREATE TABLE odd (id int, v {type}); INSERT INTO odd VALUES (1, '{value}')"
    )
    with database.installed("odd") as source:
        recorded = Recorded(source)
        recorded._thread.start()
        with pytest.raises(UnsupportedType, match="cannot be represented"):
            read(source, whole(source.relations["pg.odd"]))
        recorded.__exit__()
    database.execute("DROP TABLE odd")


def test_keys_of_other_types_and_beyond_the_range(database: Database) -> None:
    database.execute(
        "DROP TABLE IF EXISTS k; CREATE TABLE k (i int, s smallint, n numeric(8, 2), t text, u uuid, d date)"
    )
    uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    database.execute(f"INSERT INTO k VALUES (1, 1, 1.5, 'a', '{uuid}', '2024-01-01'), (2, 2, 2, 'b', NULL, NULL)")
    with database.installed("k") as source, Recorded(source):
        relation = source.relations["pg.k"]

        def found(column: str, *values: Any) -> set[int]:
            _, (bag,) = read(source, matching(relation, column, *values))
            return {row[0] for row in bag}

        assert found("i", 1, 10**12, -(2**70)) == {1}
        assert found("s", 2, 70000) == {2}
        assert found("i", Decimal("1.0"), Decimal("2.5")) == {1}
        assert found("i", 1.0, 1e300) == {1}
        assert found("n", 2, Decimal("1.50")) == {1, 2}
        assert found("n", 1.5) == {1}
        assert found("t", "a", "nul\0", "lone \ud800", "'; DROP TABLE k; --") == {1}
        assert found("u", uuid, "not a uuid", uuid.upper()) == {1}
        assert found("d", date(2024, 1, 1)) == {1}
        assert found("d", datetime(2024, 1, 1, tzinfo=UTC)) == {1}
        assert found("i", "1") == {1, 2}, "a key that tells nothing restricts nothing"
        assert found("i", *range(3, 20_000)) == set()
        assert found("i") == set()
    database.execute("DROP TABLE k")


def test_keys_of_several_columns_and_joins_of_unlike_columns(database: Database) -> None:
    database.execute(
        'DROP TABLE IF EXISTS a, b; CREATE TABLE a ("Odd "" name" int, t text COLLATE "C", u uuid);'
        " CREATE TABLE b (n numeric(5, 1), c char(4), v text)"
    )
    uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    database.execute(f"INSERT INTO a VALUES (1, 'x', '{uuid}'), (1, 'y', NULL), (2, 'x', NULL)")
    database.execute(f"INSERT INTO b VALUES (1, 'x', '{uuid}'), (1.5, 'y', 'z')")
    with database.installed("a", "b") as source, Recorded(source) as recorded:
        a, b = operand(source.relations["pg.a"], "a", 0), operand(source.relations["pg.b"], "b", 1)
        odd = 'a.Odd " name'
        keys = tuple((number, "x") for number in range(12_000))
        answer = recorded.read(Fetch((a,), ("a.t", odd), (), (odd, "a.t"), keys))
        assert answer.bags == [{("x", 1): 1, ("x", 2): 1}]
        for equal in ((odd, "b.n"), ("a.t", "b.c"), ("a.u", "b.v"), ("a.t", "b.v")):
            recorded.read(Fetch((a, b), (*a.columns, *b.columns), (equal,)))
        again = operand(source.relations["pg.a"], "z", 1)
        recorded.read(Fetch((a, again), (*a.columns, "z.t"), ((odd, 'z.Odd " name'),)))
        recorded.catch_up()
    recorded.check()
    database.execute("DROP TABLE a, b")
