"""Rows on which two readings of an expression are compared: edge values of each type, and what the view mentions.

Everything comes from a seed. `mild` rows leave out what makes arithmetic fail: extremes, and zero.
"""

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from viewkeeper.clock import seeded
from viewkeeper.sql.one_nan import NAN
from viewkeeper.sql.type_families import Family, SqlType, type_named

Row = tuple[Any, ...]

_DAYS = [datetime.date(*day) for day in ((1969, 12, 31), (1970, 1, 1), (2000, 2, 29), (2023, 12, 31), (2024, 1, 1))]
_TIMES = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(1970, 1, 1),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 500_000),
    datetime.datetime(2024, 3, 31, 1, 30),
]
_PLAIN: dict[Family, list[Any]] = {
    Family.BOOLEAN: [True, False],
    Family.STRING: ["", "a", "A", "ab", "%", " b", "é", "1", "-2.5", "2024-02-29", "2024-02-29 12:30:15"],
    Family.BINARY: [b"", b"a"],
    Family.DATE: _DAYS,
    Family.TIMESTAMP: [time.replace(tzinfo=datetime.UTC) for time in _TIMES],
    Family.TIMESTAMP_NTZ: _TIMES,
}


def sample_rows(
    types: Sequence[str], nodes: Iterable[exp.Expr], count: int, *, mild: bool = False, operand: int = 0
) -> list[Row]:
    """So many rows of columns with these types, for expressions with these trees; others for each operand, so that
    columns of two of them differ."""
    mentioned = [node for tree in nodes for node in tree.find_all(exp.Literal)]
    pools = [_values(type_named(type), mentioned, mild) for type in types]
    random = seeded((operand * 127 + len(types)) * 31 + count)
    rows = [tuple(random.choice(pool) for pool in pools) for _ in range(count)]
    return [tuple([None] * len(types)), *rows] if count else rows


def _values(type: SqlType, mentioned: Sequence[exp.Literal], mild: bool) -> list[Any]:
    if type.numeric:
        return [None, *_numbers(type, mentioned, mild)]
    values = list(_PLAIN.get(type.family, []))
    if type.family is Family.STRING:
        values += [literal.name for literal in mentioned if literal.is_string]
    return [None, *values]


def _numbers(type: SqlType, mentioned: Sequence[exp.Literal], mild: bool) -> list[Any]:
    written = [Decimal(literal.name) for literal in mentioned if not literal.is_string]
    values = [Decimal(value) for value in (1, 2, 3, 7)]
    values += [value + step for value in written for step in ((0, 1) if mild else (0, 1, -1))]
    if type.family is Family.FLOATING:
        odd = [] if mild else [0.0, -0.0, -1.5, 1e300, NAN, float("inf"), float("-inf")]
        return [*map(float, values), 0.1, *odd]
    if not mild:
        values += [Decimal(0), Decimal(-1), Decimal(-7)]
    if type.family is Family.INTEGER:
        low, high = type.bounds
        return [int(value) for value in values if low <= value <= high] + ([] if mild else [low, high])
    largest, smallest = Decimal(10) ** (type.precision - type.scale), Decimal(1).scaleb(-type.scale)
    fitting = [value for value in values if abs(value) < largest and value == round(value, type.scale)]
    return [*fitting, smallest] + ([] if mild else [largest - smallest, smallest - largest])
