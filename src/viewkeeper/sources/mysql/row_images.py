"""Rows as the log writes them.

    row event  =  (null bitmap, fields that are not null)*          update: the row before, then the row after

The library frames events and describes tables; fields are decoded here, by one small reader per column, since the
values must be those of an answer (all bytes of BINARY(n), labels of ENUM and SET, numbers of BIT).
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from viewkeeper.algebra.zset import Row
from viewkeeper.sources.layout import Fits, fits, widens
from viewkeeper.sources.mysql.types import INTEGERS, UNSIGNED, Column, unfit_value
from viewkeeper.sql.relation import Relation

Reader = Callable[[bytes, int], tuple[Any, int]]
"""From the bytes and the place of a field: its value, and the place after it."""

TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, DATE, YEAR = 1, 2, 3, 4, 5, 8, 9, 10, 13
TIME2, JSON, GEOMETRY = 19, 245, 255
VARCHAR, BIT, TIMESTAMP2, DATETIME2, NEWDECIMAL, ENUM, SET, BLOB, STRING = 15, 16, 17, 18, 246, 247, 248, 252, 254

EXPECTED = {
    "tinyint": TINY,
    "smallint": SHORT,
    "mediumint": INT24,
    "int": LONG,
    "bigint": LONGLONG,
    "decimal": NEWDECIMAL,
    "float": FLOAT,
    "double": DOUBLE,
    "char": STRING,
    "binary": STRING,
    "varchar": VARCHAR,
    "varbinary": VARCHAR,
    "date": DATE,
    "datetime": DATETIME2,
    "timestamp": TIMESTAMP2,
    "year": YEAR,
    "bit": BIT,
    "enum": ENUM,
    "set": SET,
}
"""The type in the log of a declared one; what is missing is a BLOB."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
NUMBERS = {TINY: "b", SHORT: "h", LONG: "i", LONGLONG: "q"}


@dataclass(frozen=True)
class RowImages:
    """What reads the rows of one table, in the form that the log describes.

    `readers` are those of all logged columns, `places` says for each column of the relation which of them it is.
    """

    readers: tuple[Reader, ...]
    places: tuple[int | None, ...]
    checks: tuple[tuple[int, Fits], ...]
    """for columns that are wider in the log than they were registered: whether a value fits"""
    missing: tuple[str, ...]
    """the columns of the relation that the log does not have, or describes otherwise"""

    @classmethod
    def of(cls, relation: Relation, columns: Sequence[Column | None], logged: list[Any]) -> "RowImages | None":
        """How rows of the log are read; None if it does not name its columns. Those that are no part of the relation
        are passed over."""
        names = [found.name for found in logged]
        if None in names:
            return None
        readers = [_passing(found) for found in logged]
        places: list[int | None] = []
        checks, missing = [], []
        for number, (name, column) in enumerate(zip(relation.columns, columns, strict=True)):
            found = logged[names.index(name)] if name in names else None
            if column is None or found is None or not (_same(column, found) or _alike(column, found)):
                places.append(None)
                missing += [name] if column is not None else []
                continue
            places.append(names.index(name))
            readers[names.index(name)] = _reader(column, found)
            registered = relation.types[number]
            if (written := _exact(found)) and not widens(written, registered):
                checks.append((number, fits(registered, written) or bool))
        return cls(tuple(readers), tuple(places), tuple(checks), tuple(missing))

    @property
    def everything(self) -> int:
        """The bitmap of columns that a whole row has."""
        return (1 << len(self.readers)) - 1

    def rows(self, data: bytes, unfit: Callable[[int, Any], None]) -> list[Row]:
        """All rows of an event, in their order; `unfit` is told of a value that is NULL in them, since it does not fit
        the column of that number."""
        rows: list[Row] = []
        readers, places = self.readers, self.places
        as_logged = places == tuple(range(len(readers)))
        bitmap = (len(readers) + 7) // 8
        place, end = 0, len(data)
        while place < end:
            nulls = int.from_bytes(data[place : place + bitmap], "little")
            place += bitmap
            row: list[Any] = []
            for reader in readers:
                if nulls & 1:
                    row.append(None)
                else:
                    value, place = reader(data, place)
                    row.append(value)
                nulls >>= 1
            if not as_logged:
                row = [None if number is None else row[number] for number in places]
            for number, check in self.checks:
                if not check(row[number]):
                    unfit(number, row[number])
                    row[number] = None
            rows.append(tuple(row))
        return rows


def _exact(found: Any) -> str:
    """The type of whole or decimal numbers that the log describes; '' for others."""
    if found.type == NEWDECIMAL:
        return f"DECIMAL({found.precision}, {found.decimals})"
    kind = next((kind for kind, code in EXPECTED.items() if code == found.type), "")
    return (UNSIGNED if getattr(found, "unsigned", False) else INTEGERS).get(kind, "")


def _alike(column: Column, found: Any) -> bool:
    """Whether the log describes a column as it was before it was made wider, or is since: INT and BIGINT, VARCHAR and
    TEXT of one character set."""
    now = EXPECTED.get(column.declared.kind, BLOB)
    if written := _exact(found):
        return widens(written, column.type) or widens(column.type, written)
    return column.decode is not None and {now, found.type} <= {VARCHAR, BLOB}


def _passing(found: Any) -> Reader:
    """Passes over a field that nobody reads."""
    kind = found.type
    if kind in NUMBERS or kind in (FLOAT, DOUBLE, INT24, YEAR, DATE):
        return _skip({TINY: 1, SHORT: 2, LONGLONG: 8, DOUBLE: 8, INT24: 3, YEAR: 1, DATE: 3}.get(kind, 4))
    if kind == NEWDECIMAL:
        return _decimal(found.precision, found.decimals)
    if kind == BIT:
        return _skip(found.bytes)
    if kind in (ENUM, SET):
        return _skip(found.size)
    if kind in (DATETIME2, TIMESTAMP2, TIME2):
        return _skip({DATETIME2: 5, TIMESTAMP2: 4, TIME2: 3}[kind] + _fraction(found.fsp)[0])
    return _bytes(found.length_size if kind in (BLOB, JSON, GEOMETRY) else 2 if found.max_length > 255 else 1)


def _skip(size: int) -> Reader:
    return lambda data, at: (None, at + size)


def _same(column: Column, found: Any) -> bool:
    """Whether the log describes the column as it is declared now."""
    declared = column.declared
    if found.name != declared.name or found.type != EXPECTED.get(declared.kind, BLOB):
        return False
    if found.type in NUMBERS or found.type == INT24:
        return bool(found.unsigned) == declared.unsigned
    if found.type == NEWDECIMAL:
        return (found.precision, found.decimals) == (declared.precision, declared.scale)
    if found.type == BIT:
        return bool(found.bits == declared.precision)
    if found.type in (ENUM, SET):
        known = found.enum_values[1:] if found.type == ENUM else found.set_values
        # The library has '' for a label that it cannot decode.
        return len(known) == len(column.labels) and all(a in ("", b) for a, b in zip(known, column.labels, strict=True))
    return True


def _reader(column: Column, found: Any) -> Reader:
    kind = found.type
    if kind in NUMBERS:
        letter = NUMBERS[kind]
        return _packed("<" + (letter.upper() if found.unsigned else letter), column.type.startswith("DECIMAL"))
    if kind in (FLOAT, DOUBLE):
        return _packed("<f" if kind == FLOAT else "<d", False)
    if kind == INT24:
        return _int24(signed=not found.unsigned)
    if kind == YEAR:
        return lambda data, at: (data[at] and data[at] + 1900, at + 1)
    if kind == NEWDECIMAL:
        return _decimal(found.precision, found.decimals)
    if kind == BIT:
        wide = column.type.startswith("DECIMAL")
        return _number(found.bytes, "big", Decimal if wide else int)
    if kind == ENUM:
        return _labelled(found.size, lambda number: (("", *column.labels))[number])
    if kind == SET:
        return _labelled(
            found.size, lambda number: ",".join(label for i, label in enumerate(column.labels) if number >> i & 1)
        )
    if kind == DATE:
        return _date(column)
    if kind == DATETIME2:
        return _datetime(column, found.fsp)
    if kind == TIMESTAMP2:
        return _timestamp(column, found.fsp)
    length = found.length_size if kind == BLOB else 2 if found.max_length > 255 else 1
    if column.decode is not None:
        return _text(column, length)
    if column.declared.kind == "binary":
        return _padded(length, column.declared.length)
    return _bytes(length)


def _packed(form: str, wide: bool) -> Reader:
    packed = struct.Struct(form)
    unpack, size = packed.unpack_from, packed.size
    if wide:
        return lambda data, at: (Decimal(unpack(data, at)[0]), at + size)
    return lambda data, at: (unpack(data, at)[0], at + size)


def _int24(signed: bool) -> Reader:
    return lambda data, at: (int.from_bytes(data[at : at + 3], "little", signed=signed), at + 3)


def _number(size: int, order: Any, make: Callable[[int], Any]) -> Reader:
    return lambda data, at: (make(int.from_bytes(data[at : at + size], order)), at + size)


def _labelled(size: int, label: Callable[[int], str]) -> Reader:
    return lambda data, at: (label(int.from_bytes(data[at : at + size], "little")), at + size)


def _bytes(length: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        start = at + length
        end = start + int.from_bytes(data[at:start], "little")
        return data[start:end], end

    return read


def _padded(length: int, size: int) -> Reader:
    """BINARY(n): the log leaves out the zero bytes at the end."""
    bare = _bytes(length)

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        value, end = bare(data, at)
        return value.ljust(size, b"\0"), end

    return read


def _text(column: Column, length: int) -> Reader:
    decode = column.decode
    assert decode is not None

    def read(data: bytes, at: int) -> tuple[str, int]:
        start = at + length
        end = start + int.from_bytes(data[at:start], "little")
        try:
            return decode(data[start:end]), end
        except UnicodeDecodeError:
            raise unfit_value(column, data[start:end]) from None

    return read


def _decimal(precision: int, scale: int) -> Reader:
    """Groups of nine digits in four bytes, shorter ones at both ends; the first bit is the sign, all bits are turned
    in a negative number."""
    whole, part = precision - scale, scale
    groups = [(DIGIT_BYTES[whole % 9], whole % 9)] if whole % 9 else []
    groups += [(4, 9)] * (whole // 9 + part // 9)
    groups += [(DIGIT_BYTES[part % 9], part % 9)] if part % 9 else []
    size = sum(width for width, _ in groups)
    top, ones = 1 << size * 8 - 1, (1 << size * 8) - 1

    def read(data: bytes, at: int) -> tuple[Decimal, int]:
        end = at + size
        raw = int.from_bytes(data[at:end], "big") ^ top
        negative = bool(raw & top)
        if negative:
            raw ^= ones
        packed = raw.to_bytes(size, "big")
        number, place = 0, 0
        for width, digits in groups:
            number = number * 10**digits + int.from_bytes(packed[place : place + width], "big")
            place += width
        return Decimal(f"{'-' if negative else ''}{number}E-{scale}"), end

    return read


def _fraction(fsp: int) -> tuple[int, int]:
    """The bytes of a fraction of a second, and the microseconds of its unit."""
    size = (fsp + 1) // 2
    return size, 10 ** (6 - 2 * size)


def _date(column: Column) -> Reader:
    def read(data: bytes, at: int) -> tuple[date, int]:
        packed = int.from_bytes(data[at : at + 3], "little")
        try:
            return date(packed >> 9, packed >> 5 & 15, packed & 31), at + 3
        except ValueError:
            raise unfit_value(column, f"{packed >> 9:04d}-{packed >> 5 & 15:02d}-{packed & 31:02d}") from None

    return read


def _datetime(column: Column, fsp: int) -> Reader:
    size, unit = _fraction(fsp)

    def read(data: bytes, at: int) -> tuple[datetime, int]:
        start = at + 5
        packed = int.from_bytes(data[at:start], "big") - 0x8000000000
        micros = int.from_bytes(data[start : start + size], "big") * unit
        year, month = divmod(packed >> 22, 13)
        day, hour, minute, second = packed >> 17 & 31, packed >> 12 & 31, packed >> 6 & 63, packed & 63
        try:
            return datetime(year, month, day, hour, minute, second, micros), start + size
        except ValueError:
            shown = f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}"
            raise unfit_value(column, shown) from None

    return read


def _timestamp(column: Column, fsp: int) -> Reader:
    size, unit = _fraction(fsp)

    def read(data: bytes, at: int) -> tuple[datetime, int]:
        start = at + 4
        seconds = int.from_bytes(data[at:start], "big")
        micros = int.from_bytes(data[start : start + size], "big") * unit
        if seconds == 0 and micros == 0:
            raise unfit_value(column, "0000-00-00 00:00:00")
        return EPOCH + timedelta(seconds=seconds, microseconds=micros), start + size

    return read
