"""Fetches as statements, with their keys on the way to the server.

    SELECT columns FROM (keys) k JOIN r ... ON r.x = k.k0 ... WHERE equalities
    SELECT columns FROM s WHERE s.y IN (SELECT r.x FROM (keys) k JOIN r ...)        keys that are rows of another fetch

Keys travel as JSON in variables of the session, in pieces that fit a packet, and are unpacked there by JSON_TABLE into
columns of the types that they are compared with. They are made distinct after that: a collation may take two of them
for the same, and a row must not come twice.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from viewkeeper.algebra.zset import Row
from viewkeeper.messages import Fetch
from viewkeeper.sources.mysql.catalog import Captured
from viewkeeper.sources.mysql.connections import quoted
from viewkeeper.sources.mysql.types import GONE, Column

PIECE = 1_000_000
"""Characters of keys in one variable: four bytes each at most, and packets hold 16 MB by default."""

LONGEST = 10_000
"""Characters of text that are compared as VARCHAR."""


@dataclass(frozen=True)
class Statement:
    """A statement, and the variables that it reads."""

    text: str
    variables: Mapping[str, str]
    columns: tuple[Column, ...]


def statement(fetch: Fetch, tables: Mapping[str, Captured]) -> Statement:
    """What is asked of the server for a fetch."""
    found = _found(fetch, tables)
    # A fetch may want no column at all: then its rows are empty, and counted.
    asked = [found[name][1].asked.format(found[name][0]) for name in fetch.columns] or ["1"]
    text, variables = _selected(asked, fetch, found, tables)
    return Statement(text, variables, tuple(found[name][1] for name in fetch.columns))


Found = Mapping[str, tuple[str, Column]]
"""The columns of a fetch's operands: how each is written, and what it is."""


def _found(fetch: Fetch, tables: Mapping[str, Captured]) -> Found:
    return {
        name: (f"{quoted(operand.alias)}.{quoted(column.name)}", column) if column is not None else ("NULL", GONE)
        for operand in fetch.operands
        for table in (tables[operand.relation.name],)
        for name, column in zip(
            (f"{operand.alias}.{one}" for one in table.relation.columns), table.columns, strict=True
        )
    }


def _selected(
    asked: Sequence[str], fetch: Fetch, found: Found, tables: Mapping[str, Captured]
) -> tuple[str, dict[str, str]]:
    """SELECT asked FROM the operands of a fetch, under its conditions; and the variables that it reads."""
    sources = [
        f"{quoted(place[0])}.{quoted(place[1])} AS {quoted(operand.alias)}"
        for operand in fetch.operands
        for place in (tables[operand.relation.name].place,)
    ]
    conditions = [f"{found[one][0]} = {found[other][0]}" for one, other in fetch.equal]
    variables: dict[str, str] = {}
    if fetch.keys is not None and not fetch.matched:
        conditions += [] if fetch.keys else ["FALSE"]
    elif fetch.keys is not None:
        matched = [found[name] for name in fetch.matched]
        shipped = [row for row in map(_shipped, fetch.keys) if row is not None]
        variables = _pieces(shipped)
        sources.insert(0, f"({_unpacked(variables, matched, shipped)}) AS `_vk_keys`")
        conditions += [f"{name} = `_vk_keys`.`k{number}`" for number, (name, _) in enumerate(matched)]
    elif fetch.among is not None:
        inner = _found(fetch.among, tables)
        pairs = [(found[a], inner[b]) for a, b in zip(fetch.matched, fetch.among.columns, strict=True)]
        text, variables = _selected([_as(other, one) for (_, one), other in pairs], fetch.among, inner, tables)
        conditions.append(f"({', '.join(name for (name, _), _ in pairs)}) IN ({text})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(asked)} FROM {' JOIN '.join(sources)}{where}", variables


def _as(value: tuple[str, Column], compared: Column) -> str:
    """A column as another one is compared: a server refuses to compare two collations that are equally strong."""
    name, column = value
    charset, collation = compared.declared.charset, compared.declared.collation
    if charset is None or collation is None or collation == column.declared.collation:
        return name
    return f"CONVERT({name} USING {quoted(charset)}) COLLATE {quoted(collation)}"


def _pieces(rows: Sequence[list[str]]) -> dict[str, str]:
    """The keys as JSON, by the name of the variable; at least one piece, which may be empty."""
    pieces: list[list[str]] = [[]]
    size = 0
    for row in rows:
        text = json.dumps(row, ensure_ascii=False)
        if size + len(text) > PIECE and pieces[-1]:
            pieces.append([])
            size = 0
        pieces[-1].append(text)
        size += len(text)
    return {f"_vk_{number}": f"[{','.join(piece)}]" for number, piece in enumerate(pieces)}


def _unpacked(variables: Mapping[str, str], matched: Sequence[tuple[str, Column]], rows: Sequence[list[str]]) -> str:
    declared, compared = [], []
    for number, (_, column) in enumerate(matched):
        kind = column.shipped
        if kind == "text":
            longest = max((len(row[number]) for row in rows), default=0) + 1
            # Not LONGTEXT: MariaDB 10.11 finds no row at all by distinct UNHEX of that.
            kind = f"VARCHAR({longest})" if longest <= LONGEST else "MEDIUMTEXT"
            kind += " CHARACTER SET utf8mb4"
        declared.append(f"k{number} {kind} PATH '$[{number}]'")
        compared.append(f"{column.compared.format(f'k{number}')} AS k{number}")
    selected = [
        f"SELECT {', '.join(compared)} FROM JSON_TABLE(@{variable}, '$[*]' COLUMNS ({', '.join(declared)})) AS j"
        for variable in variables
    ]
    # UNION takes doubles away; so does DISTINCT where there is one piece.
    return " UNION ".join(selected) if len(selected) > 1 else selected[0].replace("SELECT", "SELECT DISTINCT", 1)


def _shipped(key: Row) -> list[str] | None:
    """A key in the text of JSON; None if no row can have it."""
    texts = []
    for value in key:
        text = _text(value)
        if text is None:
            return None
        texts.append(text)
    return texts


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        # A lone surrogate is no text that the server could hold.
        return None if any("\ud800" <= sign <= "\udfff" for sign in value) else value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, datetime):
        plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return plain.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    return str(value)
