"""The answer to a fetch over immutable contents.

One operand: its rows pass by in batches, those that match the keys are given. The files are searched by column, and
row groups that cannot hold a key are not read.

Several: from the operand with the keys outwards, as a sweep goes: the values of what is joined so far are the keys with
which the next one is read. So few keys touch few rows. Where more than `small` rows come together, Spark joins.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from viewkeeper.algebra.zset import Row
from viewkeeper.messages import Fetch
from viewkeeper.sources.lake.column_types import arrow_type, python_values
from viewkeeper.sources.lake.content import ROWS_AT_ONCE, Content
from viewkeeper.sources.lake.workshop import Workshop
from viewkeeper.sql.type_families import Family, parse_type, sql_type
from viewkeeper.sql.view import Operand

Contents = Mapping[str, Content]
"""by the name of the relation"""


class TooLarge(Exception):
    """More rows than are joined on the driver."""


def answer(fetch: Fetch, contents: Contents, workshop: Workshop) -> Iterator[Sequence[Row]]:
    """The rows that a fetch asks for, in batches."""
    if fetch.among is not None:
        values = dict.fromkeys(row for batch in answer(fetch.among, contents, workshop) for row in batch)
        fetch = replace(fetch, keys=tuple(row for row in values if None not in row), among=None)
    if fetch.keys is not None and not fetch.keys:
        return
    if len(fetch.operands) == 1:
        yield from _of_one(fetch, contents)
        return
    try:
        rows = _joined(fetch, contents, workshop.small)
    except TooLarge:
        yield from _on_spark(fetch, contents, workshop)
        return
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


def among(content: Content, columns: Sequence[str], keys: Sequence[Row]) -> dict[str, pa.Array]:
    """The values that each column may have, as far as Arrow finds the same values equal as Python does."""
    values = {}
    for number, column in enumerate(columns):
        type = content.schema.field(column).type
        if pa.types.is_floating(type):  # NaN, and -0.0
            continue
        distinct = list(dict.fromkeys(key[number] for key in keys))
        try:
            made = pa.array(distinct, type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
        # Arrow makes 1 of 1.5 and of True.
        if python_values(made) == distinct:
            values[column] = made
    return values


def _of_one(fetch: Fetch, contents: Contents) -> Iterator[Sequence[Row]]:
    (operand,) = fetch.operands
    content = contents[operand.relation.name]
    names = dict(zip(operand.columns, operand.relation.columns, strict=True))
    equal = [(names[a], names[b]) for a, b in fetch.equal]
    matched = [names[column] for column in fetch.matched] if fetch.keys is not None else []
    output = [names[column] for column in fetch.columns]
    needed = list(dict.fromkeys([*output, *matched, *chain(*equal)])) or [content.schema.names[0]]
    wanted = among(content, matched, fetch.keys or ())
    keys = set(fetch.keys or ()) if len(wanted) < len(matched) or len(matched) > 1 else None
    if needed == output and keys is None and not equal:
        yield from content.rows(needed, wanted)
        return
    places, at, pairs = _places(needed, output, matched, equal)
    for rows in content.rows(needed, wanted):
        yield _selected(rows, places, at, pairs, keys)


def _places(
    columns: Sequence[str], output: Sequence[str], matched: Sequence[str], equal: Sequence[tuple[str, str]]
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    at = {name: place for place, name in enumerate(columns)}
    return [at[name] for name in output], [at[name] for name in matched], [(at[a], at[b]) for a, b in equal]


def _selected(
    rows: Iterable[Row],
    output: Sequence[int],
    matched: Sequence[int],
    equal: Sequence[tuple[int, int]],
    keys: set[Row] | None,
) -> list[Row]:
    return [
        tuple([row[place] for place in output])
        for row in rows
        if (keys is None or tuple([row[place] for place in matched]) in keys)
        and all(row[a] is not None and (row[a] is row[b] or row[a] == row[b]) for a, b in equal)
    ]


# --- several operands ---


def _joined(fetch: Fetch, contents: Contents, small: int) -> list[Row]:
    needed = {*fetch.columns, *fetch.matched, *chain(*fetch.equal)}
    equal = comparable(fetch)
    start = _first(fetch)
    columns, rows = _rows_of(start, needed, contents, _keys_within(fetch, start), small)
    todo = [operand for operand in fetch.operands if operand is not start]
    while todo:
        operand = next((one for one in todo if _links(equal, columns, one)), todo[0])
        todo.remove(operand)
        links = _links(equal, columns, operand)
        places = [columns.index(mine) for mine, _ in links]
        partners = {tuple(row[place] for place in places) for row in rows} if links else set()
        partners = {key for key in partners if None not in key}
        keys = (tuple(its for _, its in links), partners) if links else None
        more, found = _rows_of(operand, needed, contents, keys, small)
        by_key: defaultdict[Row, list[Row]] = defaultdict(list)
        at = [more.index(its) for _, its in links]
        for row in found:
            by_key[tuple(row[place] for place in at)].append(row)
        rows = _bounded((a + b for a in rows for b in by_key.get(tuple(a[place] for place in places), ())), small)
        columns = columns + more
    wanted = set(fetch.keys) if fetch.keys is not None else None
    return _selected(rows, *_places(columns, fetch.columns, fetch.matched, equal), wanted)


Keys = tuple[tuple[str, ...], Iterable[Row]]


def _rows_of(
    operand: Operand, needed: set[str], contents: Contents, keys: Keys | None, small: int
) -> tuple[list[str], list[Row]]:
    content = contents[operand.relation.name]
    names = dict(zip(operand.columns, operand.relation.columns, strict=True))
    columns = [column for column in operand.columns if column in needed] or [operand.columns[0]]
    wanted = among(content, [names[c] for c in keys[0]], list(keys[1])) if keys else {}
    if keys and not list(keys[1]):
        return columns, []
    if not wanted and content.count() > small:
        raise TooLarge
    batches = content.rows([names[column] for column in columns], wanted)
    return columns, _bounded((row for batch in batches for row in batch), small)


def _bounded(rows: Iterable[Row], small: int) -> list[Row]:
    kept = []
    for row in rows:
        kept.append(row)
        if len(kept) > small:
            raise TooLarge
    return kept


def _first(fetch: Fetch) -> Operand:
    """Where to begin: at an operand with keys."""
    return next((one for one in fetch.operands if _keys_within(fetch, one)), fetch.operands[0])


def _keys_within(fetch: Fetch, operand: Operand) -> Keys | None:
    """The shipped keys as far as they are about one operand."""
    places = [place for place, column in enumerate(fetch.matched) if column in operand.columns]
    if fetch.keys is None or not places:
        return None
    return tuple(fetch.matched[place] for place in places), {tuple(key[p] for p in places) for key in fetch.keys}


def _links(equal: Sequence[tuple[str, str]], columns: Sequence[str], operand: Operand) -> list[tuple[str, str]]:
    """The equalities between what is joined so far and one more operand."""
    pairs = [*equal, *((b, a) for a, b in equal)]
    return [(a, b) for a, b in pairs if a in columns and b in operand.columns]


def comparable(fetch: Fetch) -> list[tuple[str, str]]:
    """The equalities for which Python finds the same values equal as SQL does; the others are left to the query."""
    families = {
        column: sql_type(parse_type(type)).family
        for operand in fetch.operands
        for column, type in zip(operand.columns, operand.relation.types, strict=True)
    }
    exact = {Family.INTEGER, Family.DECIMAL}
    return [(a, b) for a, b in fetch.equal if families[a] is families[b] or {families[a], families[b]} == exact]


def _on_spark(fetch: Fetch, contents: Contents, workshop: Workshop) -> Iterator[Sequence[Row]]:
    from viewkeeper.sources.lake.on_spark import joined_on_spark, read_joined

    types = {
        column: arrow_type(type)
        for operand in fetch.operands
        for column, type in zip(operand.columns, operand.relation.types, strict=True)
    }
    with joined_on_spark(replace(fetch, equal=tuple(comparable(fetch))), contents, workshop) as paths:
        for batch in read_joined(paths, [types[column] for column in fetch.columns], ROWS_AT_ONCE):
            yield list(zip(*map(python_values, batch.columns), strict=True))
