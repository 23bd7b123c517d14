"""Aggregates of sums and counts, by summary-deltas.

    accumulators of a group    n = COUNT(*),  Σe and COUNT(e) of every argument e
    A' = A + Δ                 Δ  =  the same of the changed rows, each times its weight
    ΔO = out(A') - out(A)      over the touched groups; a group with n = 0 is not there, unless there are no keys

COUNT, SUM and AVG of exact numbers are made of these; DISTINCT is an aggregate without functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

from viewkeeper.errors import ExpressionError
from viewkeeper.operators.expressions import flat, flat_names
from viewkeeper.operators.node import Engine, Followed, State, StateTable, Z, support
from viewkeeper.sql.tree import Aggregate, Call, Column, Operator
from viewkeeper.sql.type_families import Family, SqlType, parse_type, sql_type

LINEAR = ("count", "sum", "avg")
COUNT = Column("n", "bigint", nullable=False)
_ROOM = Context(prec=200)
_QUOTIENT = Decimal(1).scaleb(-39)
"""the digits that Spark divides to before it rounds"""


def type_of(name: str) -> SqlType:
    return sql_type(parse_type(name))


def is_exact(type: str) -> bool:
    return type_of(type).family in (Family.INTEGER, Family.DECIMAL)


def is_linear(aggregate: Aggregate) -> bool:
    """Whether sums and counts are enough. The arguments are columns of the input, or constants."""
    types = {one.name: one.type for one in aggregate.input.columns}
    return all(
        call.function in LINEAR
        and not call.distinct
        and call.filter is None
        and len(call.arguments) == 1
        and (call.function == "count" or is_exact(types.get(call.arguments[0], "")))
        for call in aggregate.calls
    )


@dataclass(frozen=True)
class SumsNode:
    """Keys and arguments are columns of the input."""

    operator: Aggregate
    number: int
    rule = "−old +new of each touched group, from stored sums and counts"

    @property
    def _keys(self) -> tuple[Column, ...]:
        return tuple(one.column for one in self.operator.keys)

    @property
    def _arguments(self) -> tuple[Column, ...]:
        """The columns that are summed or counted; of COUNT(*) none is needed."""
        types = {one.name: one for one in self.operator.input.columns}
        return tuple(dict.fromkeys(types[a] for call in self.operator.calls for a in call.arguments if a in types))

    @property
    def groups(self) -> StateTable:
        sums: list[Column] = []
        for one in self._arguments:
            if is_exact(one.type):
                sums.append(Column(f"sum_{one.name}", f"decimal(38,{type_of(one.type).scale})"))
            sums.append(Column(f"count_{one.name}", "bigint"))
        names = tuple(one.name for one in self._keys)
        return StateTable(f"{self.number}_groups", (*self._keys, COUNT, *sums), names)

    @property
    def tables(self) -> tuple[StateTable, ...]:
        return (self.groups,)

    def content(self, table: StateTable) -> Operator:
        """The accumulators, as an aggregate of the same input."""
        calls = [Call(COUNT, "count", ("1",), sql="count(1)")]
        for one in self._arguments:
            if is_exact(one.type):
                wide = f"decimal(38,{type_of(one.type).scale})"
                zero = f"coalesce(sum(CAST({one.name} AS {wide})), CAST(0 AS {wide}))"
                calls.append(Call(Column(f"sum_{one.name}", wide), "sum", (one.name,), sql=f"CAST({zero} AS {wide})"))
            counted = f"count({one.name})"
            calls.append(Call(Column(f"count_{one.name}", "bigint"), "count", (one.name,), sql=counted))
        return Aggregate(self.operator.input, self.operator.keys, tuple(calls))

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        (rows,) = deltas
        names, stored = flat_names(self.operator.columns), flat_names(self.groups.columns)
        if rows.is_empty():
            return Followed(engine.zset(names))
        keys = [one.sql for one in self.operator.keys]
        folded = self._folded(rows, keys)
        wanted = engine.zset(tuple(map(flat, self.groups.by)), ((key, 1) for key in folded))
        if self.groups.by:
            found = state.matching(self.groups.name, self.groups.by, wanted)
        else:
            found = state.whole(self.groups.name)
        width = len(keys)
        old = {row[:width]: row[width:] for row, _ in found.keep(stored).weights()}
        empty = (0,) * (len(stored) - width)
        accumulators, output = [], []
        for key, change in folded.items():
            before = old.get(key)
            after = tuple(a + b for a, b in zip(before or empty, change, strict=True))
            for values, sign in ((before, -1), (after, 1)):
                if values is None or (values[0] == 0 and width and sign > 0):
                    continue
                if values[0] < 0:
                    raise ExpressionError(f"the group {key} has lost more rows than it had", "reload the view")
                accumulators.append(((*key, *values), sign))
                output.append(((*key, *self._shown(values)), sign))
        return Followed(engine.zset(names, output), {self.groups.name: engine.zset(stored, accumulators)})

    def _folded(self, rows: Z, keys: Sequence[str]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """What the changed rows add to the accumulators of each group."""
        places = [rows.columns.index(flat(name)) for name in keys]
        arguments = [(rows.columns.index(flat(one.name)), is_exact(one.type)) for one in self._arguments]
        totals: dict[tuple[Any, ...], list[Any]] = {}
        for row, weight in rows.weights():
            key = tuple(row[place] for place in places)
            total = totals.get(key)
            if total is None:
                total = totals[key] = [0] * (len(self.groups.columns) - len(places))
            total[0] += weight
            at = 1
            for place, exact in arguments:
                value = row[place]
                if exact:
                    if value is not None:
                        total[at] = _ROOM.fma(Decimal(value), Decimal(weight), Decimal(total[at]))
                    at += 1
                if value is not None:
                    total[at] += weight
                at += 1
        if not keys and not totals:
            totals[()] = [0] * len(self.groups.columns)
        return {key: tuple(total) for key, total in totals.items()}

    def _shown(self, values: Sequence[Any]) -> list[Any]:
        """What readers see of accumulators."""
        named: Mapping[str, Any] = dict(
            zip((one.name for one in self.groups.columns[len(self._keys) :]), values, strict=True)
        )
        shown = []
        for call in self.operator.calls:
            argument = call.arguments[0]
            counted = named.get(f"count_{argument}", named[COUNT.name])
            if call.function == "count":
                shown.append(counted)
            elif not counted:
                shown.append(None)
            else:
                total = Decimal(named[f"sum_{argument}"])
                shown.append(
                    fitting_sum(total, call.column) if call.function == "sum" else average(total, counted, call.column)
                )
        return shown


def fitting_sum(total: Decimal, column: Column) -> Any:
    type = type_of(column.type)
    if type.family is Family.INTEGER:
        low, high = type.bounds
        if not low <= total <= high:
            raise ExpressionError(f"a sum of {total} does not fit {column.type}", "cast the argument to a wider type")
        return int(total)
    return _fitting(total, type)


def average(total: Decimal, counted: int, column: Column) -> Any:
    type = type_of(column.type)
    if type.family is not Family.DECIMAL:
        return float(total) / counted
    quotient = _ROOM.divide(total, Decimal(counted)).quantize(_QUOTIENT, ROUND_HALF_DOWN, _ROOM)
    return _fitting(quotient, type)


def _fitting(value: Decimal, type: SqlType) -> Decimal:
    rounded = value.quantize(Decimal(1).scaleb(-type.scale), ROUND_HALF_UP, _ROOM)
    if abs(rounded) >= Decimal(1).scaleb(type.precision - type.scale):
        raise ExpressionError(f"{value} does not fit {type.name}", "cast the argument to a wider type")
    return rounded


def touched(rows: Z, columns: Sequence[str]) -> Z:
    """The keys of changed rows, each once."""
    return support(rows).keep(tuple(map(flat, columns))).distinct()
