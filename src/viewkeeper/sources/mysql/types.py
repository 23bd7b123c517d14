"""Columns: the one value that a field has, in the log as in an answer.

    declared                              here            as
    TINYINT(1), TINYINT ... BIGINT        TINYINT ... BIGINT, UNSIGNED the next wider, at last DECIMAL(20, 0)
    DECIMAL(p, s)                         DECIMAL(p, s)   p up to 38
    FLOAT, DOUBLE                         FLOAT, DOUBLE
    CHAR, VARCHAR, TEXT, ENUM, SET        STRING          CHAR without its last spaces; a SET with commas
    BINARY, VARBINARY, BLOB               BINARY          BINARY(n) with all its n bytes
    DATE, DATETIME, TIMESTAMP             DATE, TIMESTAMP_NTZ, TIMESTAMP (UTC)
    YEAR                                  INT
    BIT(n)                                BIGINT, BIT(64) DECIMAL(20, 0)
    JSON of MariaDB                       STRING          it is text there

TINYINT(1) is a number: BOOLEAN is only another name for it, and it can hold 2. All others are refused: TIME and UUID
have no type in views, and MySQL's JSON is written differently in log and answer.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from viewkeeper.errors import UnsupportedType
from viewkeeper.sources.layout import widens
from viewkeeper.sources.mysql.charsets import UNICODE, Charsets, Decode

MAX_PRECISION = 38

INTEGERS = {"tinyint": "TINYINT", "smallint": "SMALLINT", "mediumint": "INT", "int": "INT", "bigint": "BIGINT"}
UNSIGNED = {"tinyint": "SMALLINT", "smallint": "INT", "mediumint": "INT", "int": "BIGINT", "bigint": "DECIMAL(20, 0)"}
TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}

Parse = Callable[[Any], Any]


@dataclass(frozen=True)
class Declared:
    """A column as information_schema tells of it."""

    table: str
    name: str
    kind: str
    full: str
    precision: int
    scale: int
    length: int
    charset: str | None
    collation: str | None
    extra: str

    @property
    def unsigned(self) -> bool:
        return "unsigned" in self.full.lower().split("(")[-1]


@dataclass(frozen=True)
class Column:
    """A column that can be captured.

    `asked` is how it is selected and `parse` makes the value of what comes (None: it is the value already). `shipped`
    is the type in which keys travel to the server, `compared` what they are compared as.
    """

    declared: Declared
    type: str
    asked: str = "{}"
    parse: Parse | None = None
    shipped: str = "BIGINT"
    compared: str = "{}"
    labels: tuple[str, ...] = ()
    decode: Decode | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.declared.name


GONE = Column(Declared("", "", "varchar", "varchar", 0, 0, 0, None, None, ""), "STRING")
"""a column that is not there any more"""


def column(declared: Declared, charsets: Charsets, mariadb: bool) -> Column:
    """What a declared column is here; UnsupportedType if its values cannot be kept exactly."""
    kind = declared.kind
    _check_generated(declared, mariadb)
    if "compressed" in declared.full.lower():
        raise _refused(declared, "the log holds its values compressed", "store it without COMPRESSED")
    if kind in INTEGERS:
        if not declared.unsigned:
            return Column(declared, INTEGERS[kind], parse=int)
        parse: Parse = Decimal if kind == "bigint" else int
        return Column(declared, UNSIGNED[kind], parse=parse, shipped="BIGINT UNSIGNED")
    if kind == "decimal":
        if declared.precision > MAX_PRECISION:
            raise _refused(
                declared,
                f"views keep {MAX_PRECISION} digits",
                f"declare it as DECIMAL({MAX_PRECISION}, {declared.scale})",
            )
        exact = f"DECIMAL({declared.precision}, {declared.scale})"
        return Column(declared, exact, parse=Decimal, shipped=exact)
    if kind in ("float", "double"):
        # As text a FLOAT has 6 digits; as a DOUBLE it has all.
        asked = "CAST({} AS DOUBLE)" if kind == "float" else "{}"
        return Column(declared, kind.upper(), asked, float, "DOUBLE")
    if kind in BYTES:
        return Column(declared, "BINARY", parse=bytes, shipped="text", compared="UNHEX({})")
    if kind == "date":
        return Column(declared, "DATE", parse=date.fromisoformat, shipped="DATE")
    if kind == "datetime":
        return Column(declared, "TIMESTAMP_NTZ", parse=datetime.fromisoformat, shipped="DATETIME(6)")
    if kind == "timestamp":
        return Column(declared, "TIMESTAMP", parse=_utc, shipped="DATETIME(6)")
    if kind == "year":
        return Column(declared, "INT", parse=int)
    if kind == "bit":
        parse = Decimal if declared.precision == 64 else int
        spark = "DECIMAL(20, 0)" if declared.precision == 64 else "BIGINT"
        return Column(declared, spark, "CAST({} AS UNSIGNED)", parse, "BIGINT UNSIGNED")
    if kind in TEXTS or kind in ("enum", "set"):
        return _text(declared, charsets)
    return _no_such(declared)


def _text(declared: Declared, charsets: Charsets) -> Column:
    charset = declared.charset or ""
    decode = charsets.decoder(charset)
    if decode is None:
        raise _refused(
            declared,
            f"text in {charset} cannot be decoded exactly",
            f"ALTER TABLE {declared.table} CONVERT TO CHARACTER SET utf8mb4",
        )
    # The names come from the server's own lists.
    compared = f"CONVERT({{}} USING {charset}) COLLATE {declared.collation}"
    if declared.kind in ("enum", "set"):
        labels = labels_of(declared.full)
        return Column(declared, "STRING", shipped="text", compared=compared, labels=labels)
    if charset in UNICODE:
        return Column(declared, "STRING", shipped="text", compared=compared, decode=decode)
    return Column(declared, "STRING", "CAST({} AS BINARY)", decode, "text", compared, decode=decode)


_WRITTEN = re.compile(r"(\w+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?(.*)", re.DOTALL)
_GROWING = {"STRING": TEXTS - {"char"}, "BINARY": BYTES - {"binary"}}


def leaves_values(registered: str, written: str, *, strict: bool) -> bool:
    """Whether every value of a registered type stays what it is when its column is given another type, by the text of
    that. Numbers do if the type holds all that the registered one does. A text that is too long for its new type is an
    error if the session is strict; else it would be cut."""
    found = _WRITTEN.match(written.strip())
    if found is None:
        return False
    kind, first, second, rest = found[1].lower(), found[2], found[3], found[4].upper()
    kind = {"integer": "int", "numeric": "decimal", "dec": "decimal", "fixed": "decimal"}.get(kind, kind)
    if kind in INTEGERS:
        return widens(registered, (UNSIGNED if "UNSIGNED" in rest else INTEGERS)[kind])
    if kind == "decimal":
        return widens(registered, f"DECIMAL({first or 10}, {second or 0})")
    if any(word in rest for word in ("CHARACTER", "CHARSET", "COLLATE", "COMPRESSED", "GENERATED", " AS ")):
        return False
    return strict and kind in _GROWING.get(registered, ())


def labels_of(full: str) -> tuple[str, ...]:
    """The labels in `enum('a','it''s')`, in their order."""
    inside = full[full.index("(") + 1 : full.rindex(")")]
    labels, place = [], 0
    while place < len(inside):
        end = place + 1
        while inside[end] != "'" or inside[end + 1 : end + 2] == "'":
            end += 2 if inside[end] == "'" else 1
        labels.append(inside[place + 1 : end].replace("''", "'"))
        place = end + 2
    return tuple(labels)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _check_generated(declared: Declared, mariadb: bool) -> None:
    extra = declared.extra.upper()
    if "VIRTUAL GENERATED" in extra and not mariadb:
        raise _refused(
            declared, "a virtual column is computed when it is read", "declare it STORED, or compute it in the view"
        )


def _no_such(declared: Declared) -> Column:
    hint = (
        "leave the table out, or add a column of another type (for example GENERATED ALWAYS AS ... STORED) and drop it"
    )
    if declared.kind == "time":
        raise _refused(declared, "views have no type for a time of day", "store seconds in an INT, or use DATETIME")
    if declared.kind in ("json", "uuid", "inet4", "inet6"):
        raise _refused(declared, "the log writes it otherwise than a query shows it", "store it as VARCHAR or LONGTEXT")
    raise _refused(declared, "views have no such type", hint)


def _refused(declared: Declared, why: str, hint: str) -> UnsupportedType:
    return UnsupportedType(f"{declared.table}.{declared.name} is {declared.full}: {why}", hint)


def unfit_value(column: Column, value: object) -> UnsupportedType:
    """For a value that has no place in the type of its column: zero dates, and bytes that are no text."""
    shown = str(value)
    return UnsupportedType(
        f"{column.declared.table}.{column.name} holds {shown[:60]!r}, which is no value of {column.type}",
        "correct the row at the source (a date of zeros is better NULL), then reload the views",
    )
