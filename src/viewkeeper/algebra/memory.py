"""The Z-set engine on the driver: a dict from row to weight.

It serves the simulator, the checker and small deltas. What a join or a projection does to a row depends on the column
names alone, so it is compiled once per shape (`_compile_join`, ...) and reused.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any

from viewkeeper.algebra.zset import On, Row
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.one_nan import one_nan

Pick = Callable[[Row], Row]


class MemoryZSet:
    """A Z-set held in memory; see `zset.ZSet` for what the operations mean."""

    __slots__ = ("_rows", "columns")

    def __init__(self, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]] = ()) -> None:
        self.columns = columns
        rows: dict[Row, int] = {}
        for row, weight in weights:
            for value in row:
                if value != value:  # a NaN; the fastest test there is, and rows without one pay for no more
                    row = one_nan(row)
                    break
            rows[row] = rows.get(row, 0) + weight
        self._rows = _without_zeros(rows)

    @classmethod
    def of(cls, columns: tuple[str, ...], *rows: Row) -> "MemoryZSet":
        """Each of the rows once."""
        return cls(columns, ((row, 1) for row in rows))

    @classmethod
    def _adopt(cls, columns: tuple[str, ...], rows: dict[Row, int]) -> "MemoryZSet":
        """Takes over a dict that holds no zeros."""
        made = cls.__new__(cls)
        made.columns = columns
        made._rows = rows
        return made

    def like(self, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]]) -> "MemoryZSet":
        return MemoryZSet(columns, weights)

    # --- a group under + ---

    def __add__(self, other: "MemoryZSet") -> "MemoryZSet":
        return self._combine(other, 1)

    def __sub__(self, other: "MemoryZSet") -> "MemoryZSet":
        return self._combine(other, -1)

    def __neg__(self) -> "MemoryZSet":
        return MemoryZSet._adopt(self.columns, {row: -weight for row, weight in self._rows.items()})

    def _combine(self, other: "MemoryZSet", sign: int) -> "MemoryZSet":
        if self.columns != other.columns:
            raise ValueError(f"cannot add Z-sets over {self.columns} and {other.columns}")
        if not other._rows:
            return self
        rows = dict(self._rows)
        for row, weight in other._rows.items():
            total = rows.get(row, 0) + sign * weight
            if total:
                rows[row] = total
            else:
                del rows[row]
        return MemoryZSet._adopt(self.columns, rows)

    # --- relational operations, linear in the weights ---

    def join(self, other: "MemoryZSet", on: On, where: tuple[Expression, ...], keep: tuple[str, ...]) -> "MemoryZSet":
        if not self._rows or not other._rows:
            return MemoryZSet._adopt(keep, {})
        left_key, right_key, holds, pick = _compile_join(self.columns, other.columns, on, where, keep)
        matches: dict[Row, list[tuple[Row, int]]] = {}
        wanted = set(map(left_key, self._rows))
        for row, weight in other._rows.items():
            key = right_key(row)
            if key in wanted and None not in key:
                matches.setdefault(key, []).append((row, weight))
        rows: dict[Row, int] = {}
        for left, left_weight in self._rows.items():
            for right, right_weight in matches.get(left_key(left), ()):
                both = left + right
                if holds is None or holds(both):
                    kept = pick(both)
                    rows[kept] = rows.get(kept, 0) + left_weight * right_weight
        return MemoryZSet._adopt(keep, _without_zeros(rows))

    def pairs(self, other: "MemoryZSet", on: On) -> int:
        """How many pairs of rows a join on these columns looks at."""
        left_key, right_key, _, _ = _compile_join(self.columns, other.columns, on, (), ())
        partners = Counter(map(right_key, other._rows))
        return sum(partners[key] for key in map(left_key, self._rows) if None not in key)

    def select(self, conditions: tuple[Expression, ...]) -> "MemoryZSet":
        if not conditions:
            return self
        holds = compile_conditions(self.columns, conditions)
        assert holds is not None
        return MemoryZSet._adopt(self.columns, {row: weight for row, weight in self._rows.items() if holds(row)})

    def project(self, output: tuple[tuple[str, Expression], ...]) -> "MemoryZSet":
        compute = _compile_projection(self.columns, output)
        rows: dict[Row, int] = {}
        for row, weight in self._rows.items():
            made = compute(row)
            rows[made] = rows.get(made, 0) + weight
        return MemoryZSet._adopt(tuple(name for name, _ in output), _without_zeros(rows))

    def keep(self, columns: tuple[str, ...]) -> "MemoryZSet":
        if columns == self.columns:
            return self
        pick = _picker(self.columns, columns)
        rows: dict[Row, int] = {}
        for row, weight in self._rows.items():
            kept = pick(row)
            rows[kept] = rows.get(kept, 0) + weight
        return MemoryZSet._adopt(columns, _without_zeros(rows))

    def rename(self, columns: tuple[str, ...]) -> "MemoryZSet":
        if len(columns) != len(self.columns):
            raise ValueError(f"cannot rename {self.columns} to {columns}")
        return MemoryZSet._adopt(columns, self._rows)

    # --- not linear: set semantics, for the keyed algorithms ---

    def distinct(self) -> "MemoryZSet":
        return MemoryZSet._adopt(self.columns, {row: 1 for row, weight in self._rows.items() if weight > 0})

    def matching(self, keys: "MemoryZSet", on: On) -> "MemoryZSet":
        mine = _picker(self.columns, tuple(left for left, _ in on))
        theirs = _picker(keys.columns, tuple(right for _, right in on))
        wanted = {theirs(row) for row in keys._rows}
        return MemoryZSet._adopt(
            self.columns, {row: weight for row, weight in self._rows.items() if mine(row) in wanted}
        )

    def key_delete(self, keys: "MemoryZSet", on: On) -> "MemoryZSet":
        return self - self.matching(keys, on)

    # --- tags ---

    def tag(self, name: str, value: int) -> "MemoryZSet":
        return MemoryZSet._adopt((name, *self.columns), {(value, *row): weight for row, weight in self._rows.items()})

    def split(self) -> dict[Any, "MemoryZSet"]:
        parts: dict[Any, dict[Row, int]] = {}
        for row, weight in self._rows.items():
            parts.setdefault(row[0], {})[row[1:]] = weight
        return {value: MemoryZSet._adopt(self.columns[1:], rows) for value, rows in parts.items()}

    # --- looking inside ---

    def values(self, columns: tuple[str, ...]) -> list[Row]:
        return list(dict.fromkeys(map(_picker(self.columns, columns), self._rows)))

    def is_empty(self) -> bool:
        return not self._rows

    def weights(self) -> Iterator[tuple[Row, int]]:
        return iter(self._rows.items())

    def size(self) -> int:
        return len(self._rows)

    def weight(self, row: Row) -> int:
        """The weight of one row; 0 if it is not there."""
        return self._rows.get(one_nan(row), 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryZSet) and self.columns == other.columns and self._rows == other._rows

    __hash__ = None  # type: ignore[assignment]  # compared by content, never used as a key

    def fingerprint(self) -> frozenset[tuple[Row, int]]:
        """The content as a hashable value, to look states up by."""
        return frozenset(self._rows.items())

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{row}[{weight:+d}]" for row, weight in self._rows.items()) + "}"


def _without_zeros(rows: dict[Row, int]) -> dict[Row, int]:
    if all(rows.values()):
        return rows
    return {row: weight for row, weight in rows.items() if weight}


@lru_cache(maxsize=4096)
def _picker(columns: tuple[str, ...], wanted: tuple[str, ...]) -> Pick:
    places = [columns.index(column) for column in wanted]
    if not places:
        return lambda row: ()
    if places == list(range(len(columns))):
        return lambda row: row
    if len(places) == 1:
        (only,) = places
        return lambda row: (row[only],)
    return itemgetter(*places)


@lru_cache(maxsize=4096)
def compile_conditions(columns: tuple[str, ...], conditions: tuple[Expression, ...]) -> Callable[[Row], bool] | None:
    """Whether all of these are true for a row of these columns; None if there are none."""
    # What can fail comes last, as in the Spark engine: it sees only the rows that the other conditions leave.
    tests = [condition.compile(columns) for condition in sorted(conditions, key=lambda condition: condition.can_fail)]
    if not tests:
        return None
    if len(tests) == 1:
        (only,) = tests
        return lambda row: only(row) is True
    return lambda row: all(test(row) is True for test in tests)


@lru_cache(maxsize=4096)
def _compile_projection(columns: tuple[str, ...], output: tuple[tuple[str, Expression], ...]) -> Pick:
    names = [expression.is_column for _, expression in output]
    if None not in names:
        return _picker(columns, tuple(name for name in names if name is not None))
    makers = [expression.compile(columns) for _, expression in output]
    return lambda row: tuple([make(row) for make in makers])


@lru_cache(maxsize=4096)
def _compile_join(
    left: tuple[str, ...], right: tuple[str, ...], on: On, where: tuple[Expression, ...], keep: tuple[str, ...]
) -> tuple[Pick, Pick, Callable[[Row], Any] | None, Pick]:
    both = left + right
    return (
        _picker(left, tuple(column for column, _ in on)),
        _picker(right, tuple(column for _, column in on)),
        compile_conditions(both, where),
        _picker(both, keep),
    )
