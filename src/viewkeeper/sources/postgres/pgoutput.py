"""The messages of PostgreSQL's output plugin pgoutput, protocol version 1.

    B  R? (I | U | D | T)*  C         one committed transaction; rolled back work and savepoints never appear

Values come as the text of their type's output function. A large value that an UPDATE did not touch is not sent
again; with REPLICA IDENTITY FULL it is taken from the old row.
"""

import struct
from typing import NamedTuple

Values = tuple[str | None, ...]


class ColumnMessage(NamedTuple):
    name: str
    type_oid: int
    typmod: int


class RelationMessage(NamedTuple):
    """How the rows of a table look from here on; it comes before its first change, and again when it may differ."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[ColumnMessage, ...]


class Begin(NamedTuple):
    xid: int


class Commit(NamedTuple):
    start: int
    """LSN of the commit record"""
    end: int
    """LSN right after it"""


class RowMessage(NamedTuple):
    """An insert (no old), a delete (no new) or an update (both); an old row that is not whole is `incomplete`."""

    oid: int
    old: Values | None
    new: Values | None
    incomplete: bool = False


class Truncate(NamedTuple):
    oids: tuple[int, ...]


Message = RelationMessage | Begin | Commit | RowMessage | Truncate

_BEGIN = struct.Struct(">QqI")
_COMMIT = struct.Struct(">BQQq")
_OID = struct.Struct(">I")
_COUNT = struct.Struct(">H")
_TYPE = struct.Struct(">Ii")

_TEXT, _NULL, _UNCHANGED = b"tnu"
_KEY_ONLY, _OLD_ROW = b"KO"


def decode(payload: bytes) -> Message | None:
    """One message; None for those that say nothing about rows."""
    match payload[0:1]:
        case b"I":
            new, _ = _row(payload, 6, None)
            return RowMessage(_OID.unpack_from(payload, 1)[0], None, new)
        case b"U":
            return _update(payload)
        case b"D":
            old, _ = _row(payload, 6, None)
            return RowMessage(_OID.unpack_from(payload, 1)[0], old, None, payload[5] == _KEY_ONLY)
        case b"B":
            return Begin(_BEGIN.unpack_from(payload, 1)[2])
        case b"C":
            _, start, end, _ = _COMMIT.unpack_from(payload, 1)
            return Commit(start, end)
        case b"R":
            return _relation(payload)
        case b"T":
            (count,) = _OID.unpack_from(payload, 1)
            return Truncate(struct.unpack_from(f">{count}I", payload, 6))
        case _:
            return None


def _update(payload: bytes) -> RowMessage:
    (oid,) = _OID.unpack_from(payload, 1)
    if payload[5] not in (_KEY_ONLY, _OLD_ROW):
        return RowMessage(oid, None, None, incomplete=True)
    old, place = _row(payload, 6, None)
    if payload[5] == _KEY_ONLY:
        return RowMessage(oid, None, None, incomplete=True)
    new, _ = _row(payload, place + 1, old)
    return RowMessage(oid, old, new)


def _row(payload: bytes, place: int, old: Values | None) -> tuple[Values, int]:
    (count,) = _COUNT.unpack_from(payload, place)
    place += 2
    values: list[str | None] = []
    for index in range(count):
        kind = payload[place]
        place += 1
        if kind == _TEXT:
            (length,) = _OID.unpack_from(payload, place)
            place += 4
            values.append(payload[place : place + length].decode())
            place += length
        elif kind == _UNCHANGED and old is not None:
            values.append(old[index])
        elif kind == _NULL:
            values.append(None)
        else:
            raise ValueError(f"a value of the kind {chr(kind)!r} in a row of the stream")
    return tuple(values), place


def _relation(payload: bytes) -> RelationMessage:
    (oid,) = _OID.unpack_from(payload, 1)
    schema, place = _name(payload, 5)
    name, place = _name(payload, place)
    identity = chr(payload[place])
    (count,) = _COUNT.unpack_from(payload, place + 1)
    place += 3
    columns = []
    for _ in range(count):
        column, place = _name(payload, place + 1)
        columns.append(ColumnMessage(column, *_TYPE.unpack_from(payload, place)))
        place += _TYPE.size
    # The schema pg_catalog is sent as an empty name.
    return RelationMessage(oid, schema or "pg_catalog", name, identity, tuple(columns))


def _name(payload: bytes, place: int) -> tuple[str, int]:
    end = payload.index(0, place)
    return payload[place:end].decode(), end + 1
