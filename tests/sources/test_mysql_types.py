"""Every type: the stream, a reading of the whole table and one by keys give the same canonical value."""

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from exactness import Recorded, matching, read, whole
from mariadb_server import MariaDb

from viewkeeper.clock import seeded
from viewkeeper.errors import UnsupportedType
from viewkeeper.sources.base import Request
from viewkeeper.sources.mysql.source import MySqlSource
from viewkeeper.sources.mysql.types import labels_of
from waiting import joined

SIGNS = "aé ß€\t'\"\\`%"

KEPT: dict[str, tuple[str, str, dict[Any, Any]]] = {
    # name: (declaration, type here, value as it is written: value as it must come)
    "tiny": ("TINYINT", "TINYINT", {-128: -128, 0: 0, 127: 127}),
    "flag": ("TINYINT(1)", "TINYINT", {0: 0, 1: 1, 2: 2, -1: -1}),
    "tiny_u": ("TINYINT UNSIGNED", "SMALLINT", {0: 0, 255: 255}),
    "small": ("SMALLINT", "SMALLINT", {-32768: -32768, 32767: 32767}),
    "small_u": ("SMALLINT UNSIGNED", "INT", {65535: 65535}),
    "medium": ("MEDIUMINT", "INT", {-8388608: -8388608, -1: -1, 8388607: 8388607}),
    "medium_u": ("MEDIUMINT UNSIGNED", "INT", {16777215: 16777215}),
    "int": ("INT", "INT", {-(2**31): -(2**31), 2**31 - 1: 2**31 - 1}),
    "int_u": ("INT UNSIGNED ZEROFILL", "BIGINT", {7: 7, 2**32 - 1: 2**32 - 1}),
    "big": ("BIGINT", "BIGINT", {-(2**63): -(2**63), 2**63 - 1: 2**63 - 1}),
    "big_u": ("BIGINT UNSIGNED", "DECIMAL(20, 0)", {2**64 - 1: Decimal(2**64 - 1), 5: Decimal(5)}),
    "dec": (
        "DECIMAL(10, 2)",
        "DECIMAL(10, 2)",
        {"-1.10": Decimal("-1.10"), "99999999.99": Decimal("99999999.99"), 0: Decimal("0.00")},
    ),
    "dec_whole": (
        "DECIMAL(38, 0)",
        "DECIMAL(38, 0)",
        {"9" * 38: Decimal("9" * 38), "-" + "9" * 38: Decimal("-" + "9" * 38)},
    ),
    "dec_part": ("DECIMAL(38, 38)", "DECIMAL(38, 38)", {"0." + "1" * 38: Decimal("0." + "1" * 38)}),
    "dec_mid": ("DECIMAL(20, 11)", "DECIMAL(20, 11)", {"-123456789.00000000001": Decimal("-123456789.00000000001")}),
    "float": ("FLOAT", "FLOAT", {"1.1": 1.100000023841858, "-3.4028234e38": -3.4028234663852886e38, "0.5": 0.5}),
    "double": ("DOUBLE", "DOUBLE", {"0.1": 0.1, "1.7976931348623157e308": 1.7976931348623157e308, "5e-324": 5e-324}),
    "char": ("CHAR(10)", "STRING", {"": "", "a  ": "a", " x": " x", SIGNS[:10]: SIGNS[:10], "😀": "😀"}),
    "varchar": ("VARCHAR(300)", "STRING", {"a  ": "a  ", SIGNS: SIGNS, "x" * 300: "x" * 300, "😀": "😀"}),
    "text": ("MEDIUMTEXT", "STRING", {"": "", "y" * 70000: "y" * 70000, SIGNS: SIGNS}),
    "latin": ("VARCHAR(20) CHARACTER SET latin1", "STRING", {"é€ß": "é€ß", "\x81\x8d": "\x81\x8d", "a ": "a "}),
    "latin2": ("CHAR(20) CHARACTER SET latin2", "STRING", {"łóđ": "łóđ"}),
    "greek": ("TEXT CHARACTER SET greek", "STRING", {"αβγ": "αβγ"}),
    "koi": ("VARCHAR(20) CHARACTER SET koi8r", "STRING", {"Привет": "Привет"}),
    "wide2": ("CHAR(10) CHARACTER SET ucs2", "STRING", {"aé€ ": "aé€"}),
    "wide16": ("VARCHAR(10) CHARACTER SET utf16", "STRING", {"a😀 ": "a😀 "}),
    "wide16le": ("VARCHAR(10) CHARACTER SET utf16le", "STRING", {"a😀": "a😀"}),
    "wide32": ("CHAR(10) CHARACTER SET utf32", "STRING", {"a😀": "a😀"}),
    "mb3": ("VARCHAR(10) CHARACTER SET utf8mb3", "STRING", {"€": "€"}),
    "ascii": ("VARCHAR(10) CHARACTER SET ascii", "STRING", {"a~": "a~"}),
    "binary": (
        "BINARY(5)",
        "BINARY",
        {b"": bytes(5), b"a\0": b"a\0\0\0\0", b" ": b" \0\0\0\0", b"\xff" * 5: b"\xff" * 5},
    ),
    "binary_long": ("BINARY(255)", "BINARY", {b"a": b"a" + bytes(254)}),
    "varbinary": ("VARBINARY(300)", "BINARY", {b"a\0\0": b"a\0\0", b"": b"", bytes(range(256)): bytes(range(256))}),
    "blob": ("BLOB", "BINARY", {b"\0": b"\0", b"z" * 60000: b"z" * 60000}),
    "date": ("DATE", "DATE", {"0001-01-01": date(1, 1, 1), "9999-12-31": date(9999, 12, 31)}),
    "datetime": (
        "DATETIME",
        "TIMESTAMP_NTZ",
        {"0001-01-01 00:00:00": datetime(1, 1, 1), "9999-12-31 23:59:59": datetime(9999, 12, 31, 23, 59, 59)},
    ),
    "datetime1": ("DATETIME(1)", "TIMESTAMP_NTZ", {"2024-02-29 12:00:00.9": datetime(2024, 2, 29, 12, 0, 0, 900000)}),
    "datetime3": ("DATETIME(3)", "TIMESTAMP_NTZ", {"2024-02-29 12:00:00.001": datetime(2024, 2, 29, 12, 0, 0, 1000)}),
    "datetime6": (
        "DATETIME(6)",
        "TIMESTAMP_NTZ",
        {"1969-12-31 23:59:59.999999": datetime(1969, 12, 31, 23, 59, 59, 999999)},
    ),
    "stamp": (
        "TIMESTAMP NULL",
        "TIMESTAMP",
        {
            "1970-01-01 00:00:01": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
            "2038-01-19 03:14:07": datetime(2038, 1, 19, 3, 14, 7, tzinfo=UTC),
        },
    ),
    "stamp5": (
        "TIMESTAMP(5) NULL",
        "TIMESTAMP",
        {"2024-06-30 12:00:00.00001": datetime(2024, 6, 30, 12, 0, 0, 10, tzinfo=UTC)},
    ),
    "year": ("YEAR", "INT", {1901: 1901, 2155: 2155, "0000": 0}),
    "enum": ("ENUM('a', 'it''s', 'ü,x')", "STRING", {"a": "a", "it's": "it's", "ü,x": "ü,x"}),
    "enum_latin": ("ENUM('ä', 'b') CHARACTER SET latin1", "STRING", {"ä": "ä"}),
    "set": ("SET('a', 'b', 'c')", "STRING", {"": "", "c,a": "a,c", "a,b,c": "a,b,c"}),
    "bit1": ("BIT(1)", "BIGINT", {0: 0, 1: 1}),
    "bit10": ("BIT(10)", "BIGINT", {5: 5, 1023: 1023}),
    "bit64": ("BIT(64)", "DECIMAL(20, 0)", {2**64 - 1: Decimal(2**64 - 1)}),
    "json": ("JSON", "STRING", {'{"a": [1, 2.50]}': '{"a": [1, 2.50]}'}),
}


@pytest.fixture
def root(mariadb: MariaDb) -> Any:
    with mariadb.root() as session:
        session.execute("CREATE OR REPLACE DATABASE types_test CHARACTER SET utf8mb4")
        session.execute("USE types_test")
        session.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES'")
        yield session


def source_of(mariadb: MariaDb, *tables: str) -> MySqlSource:
    return MySqlSource(Request("s", mariadb.url("types_test"), "types", tables or None))


def test_every_type_is_one_value_in_stream_and_readings(mariadb: MariaDb, root: Any) -> None:
    declared = ", ".join(f"`c_{name}` {declaration}" for name, (declaration, _, _) in KEPT.items())
    root.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {declared})")
    rows = 1 + max(len(values) for _, _, values in KEPT.values())
    written, expected = ([(number,) for number in range(rows)] for _ in range(2))
    for _, _, values in KEPT.values():
        for made, column in ((written, [*values]), (expected, [*values.values()])):
            made[:] = [(*row, column[row[0]] if row[0] < len(column) else None) for row in made]
    source = source_of(mariadb)
    relation = source.relations["s.t"]
    assert relation.types == ("INT", *(kind for _, kind, _ in KEPT.values()))
    with Recorded(source) as recorded:
        for row in written:
            root.execute(f"INSERT INTO t VALUES ({', '.join(['%s'] * len(row))})", row)
        root.execute("UPDATE t SET id = id + 100")
        everything = recorded.read(whole(relation)).bags[0]
        assert everything == Counter((row[0] + 100, *row[1:]) for row in expected)
        for row in everything:
            for name, value, wanted in zip(KEPT, row[1:], expected[row[0] - 100][1:], strict=True):
                assert type(value) is type(wanted), name
        for place, (name, (_, _, values)) in enumerate(KEPT.items(), 1):
            found = recorded.read(matching(relation, f"c_{name}", *values.values())).bags[0]
            assert found == Counter(row for row in everything if row[place] is not None), name
        recorded.catch_up()
    recorded.check()
    assert recorded.contents["s.t"] == everything
    source.close()


def test_random_numbers_pass_exactly(mariadb: MariaDb, root: Any) -> None:
    root.execute("CREATE TABLE n (id INT PRIMARY KEY, f FLOAT, d DOUBLE, e DECIMAL(30, 13), t TIMESTAMP(6) NULL)")
    random = seeded(3)
    source = source_of(mariadb)
    with Recorded(source) as recorded:
        rows = [
            (
                number,
                random.uniform(-1, 1) * 10 ** random.randrange(-30, 30),
                random.uniform(-1, 1) * 10 ** random.randrange(-300, 300),
                Decimal(random.randrange(-(10**30) + 1, 10**30)).scaleb(-13),
                datetime.fromtimestamp(random.randrange(1, 2**31 - 1), UTC).replace(tzinfo=None),
            )
            for number in range(400)
        ]
        with root.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO n VALUES (%s, %s, %s, %s, %s)", rows)
        answer = recorded.read(whole(source.relations["s.n"])).bags[0]
        for column, place in (("f", 1), ("d", 2), ("e", 3), ("t", 4)):
            keys = [row[place] for row in answer]
            assert recorded.read(matching(source.relations["s.n"], column, *keys)).bags[0] == answer, column
        recorded.catch_up()
    recorded.check()
    assert recorded.contents["s.n"] == answer
    assert {row[2] for row in answer} == {row[2] for row in rows}
    source.close()


def test_long_keys_that_differ_at_their_end_are_told_apart(mariadb: MariaDb, root: Any) -> None:
    root.execute("CREATE TABLE l (id INT PRIMARY KEY, t TEXT, b BLOB)")
    source = source_of(mariadb)
    with Recorded(source):
        for length in (3_000, 12_000):
            root.execute("DELETE FROM l")
            for number in range(3):
                text = "p" * length + str(number)
                root.execute("INSERT INTO l VALUES (%s, %s, %s)", (number, text, text.encode()))
            for column, wanted in (("t", ["p" * length + end for end in "02"]), ("b", [b"p" * length + b"0"])):
                (found,) = read(source, matching(source.relations["s.l"], column, *wanted))[1]
                assert {row[0] for row in found} == {int(value[-1:]) for value in wanted}
    source.close()


def test_collations_match_more_but_no_row_twice(mariadb: MariaDb, root: Any) -> None:
    root.execute("CREATE TABLE c (id INT PRIMARY KEY, v VARCHAR(10) COLLATE utf8mb4_general_ci, INDEX (v))")
    root.execute("INSERT INTO c VALUES (1, 'Abc'), (2, 'abc  '), (3, 'x')")
    source = source_of(mariadb)
    with Recorded(source):
        found = read(source, matching(source.relations["s.c"], "v", "abc", "ABC", "Abc", "nobody"))[1][0]
        assert found == Counter({(1, "Abc"): 1, (2, "abc  "): 1})
    source.close()


@pytest.mark.parametrize(
    "declaration",
    ["TIME", "UUID", "INET6", "GEOMETRY", "DECIMAL(39, 0)", "VARCHAR(10) CHARACTER SET sjis", "TEXT COMPRESSED"],
)
def test_types_that_cannot_be_kept_are_refused_by_name(mariadb: MariaDb, root: Any, declaration: str) -> None:
    root.execute(f"CREATE TABLE odd (id INT PRIMARY KEY, v {declaration})")
    with pytest.raises(UnsupportedType, match=r"odd\.v is ") as refused:
        source_of(mariadb)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("declaration", "value"),
    [
        ("DATE", "0000-00-00"),
        ("DATE", "2024-00-00"),
        ("DATETIME", "0000-00-00 00:00:00"),
        ("TIMESTAMP NULL", "0000-00-00 00:00:00"),
    ],
)
def test_dates_of_zeros_are_told(mariadb: MariaDb, root: Any, declaration: str, value: str) -> None:
    root.execute("SET sql_mode = ''")
    root.execute(f"CREATE TABLE z (id INT PRIMARY KEY, v {declaration})")
    source = source_of(mariadb)

    def written() -> None:
        with Recorded(source) as recorded:
            root.execute("INSERT INTO z VALUES (1, %s)", (value,))
            joined(recorded._thread)

    with pytest.raises(UnsupportedType, match=r"z\.v holds '[0-9]"):
        written()
    source.close()
    again = source_of(mariadb)
    with pytest.raises(UnsupportedType, match=r"z\.v holds '[0-9]"), Recorded(again):
        pass
    again.close()


def test_generated_and_invisible_columns_are_like_others(mariadb: MariaDb, root: Any) -> None:
    root.execute(
        "CREATE TABLE g (id INT PRIMARY KEY, a INT, v INT AS (a + 1) VIRTUAL, s INT AS (a * 2) STORED, "
        "h INT INVISIBLE DEFAULT 9) PARTITION BY HASH (id) PARTITIONS 3"
    )
    source = source_of(mariadb)
    with Recorded(source) as recorded:
        root.execute("INSERT INTO g (id, a) VALUES (1, 1), (2, 2), (3, NULL)")
        root.execute("UPDATE g SET a = 5 WHERE id = 2")
        answer = recorded.read(whole(source.relations["s.g"])).bags[0]
        recorded.catch_up()
    recorded.check()
    assert recorded.contents["s.g"] == answer == Counter([(1, 1, 2, 2, 9), (2, 5, 6, 10, 9), (3, None, None, None, 9)])
    source.close()


def test_labels_are_taken_apart() -> None:
    assert labels_of("enum('a','it''s','','x,y','''')") == ("a", "it's", "", "x,y", "'")
