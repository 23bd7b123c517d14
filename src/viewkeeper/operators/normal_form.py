"""A tree in the form that the nodes are written for: what is compared, grouped by or added up is a column.

L ⋈ R on f(a) = g(b)      k1 := f(a) below on the left, k2 := g(b) on the right, joined on k1 = k2
a <=> b                   a IS NULL = b IS NULL and COALESCE(a, 0) = COALESCE(b, 0)
SUM(e) FILTER (WHERE p)   SUM(k) of k := CASE WHEN p THEN e END below
ROW_NUMBER() OVER (...)   ordered by all columns in the end: rows that tie have one order, whoever looks
"""

import re
from dataclasses import dataclass, field, replace
from itertools import count

import sqlglot
from sqlglot import exp

from viewkeeper.errors import ExpressionError
from viewkeeper.operators.aggregate import LINEAR, is_exact, type_of
from viewkeeper.operators.expressions import computation
from viewkeeper.sql.evaluation import computed_type
from viewkeeper.sql.syntax import ViewDialect, spark_sql
from viewkeeper.sql.tree import (
    Aggregate,
    Call,
    Column,
    Computed,
    Join,
    Operator,
    Project,
    Query,
    Recompute,
    Scan,
    Union,
    Window,
)
from viewkeeper.sql.type_families import Family

_WORD = re.compile(r"'(?:[^'\\]|\\.|'')*'|\b[A-Za-z_]\w*\b", re.DOTALL)
_ZEROS = {
    Family.INTEGER: "0",
    Family.DECIMAL: "0",
    Family.FLOATING: "0",
    Family.BOOLEAN: "false",
    Family.STRING: "''",
    Family.DATE: "'1970-01-01'",
    Family.TIMESTAMP: "'1970-01-01 00:00:00'",
    Family.TIMESTAMP_NTZ: "'1970-01-01 00:00:00'",
}
"""a value of each type, to stand for NULL beside a flag that says so"""


def in_normal_form(query: Query) -> Query:
    """The same query."""
    return replace(query, root=_Normal().of(query.root))


def words(sql: str) -> set[str]:
    """The names that an expression has outside of its literals."""
    return {one.group() for one in _WORD.finditer(sql) if not one.group().startswith("'")}


@dataclass
class _Normal:
    _numbers: "count[int]" = field(default_factory=lambda: count(1))
    _made: dict[Operator, Operator] = field(default_factory=dict)

    def of(self, operator: Operator) -> Operator:
        if operator not in self._made:
            self._made[operator] = self._of(operator)
        return self._made[operator]

    def _of(self, operator: Operator) -> Operator:
        match operator:
            case Scan():
                return operator
            case Join():
                return self._join(replace(operator, left=self.of(operator.left), right=self.of(operator.right)))
            case Union():
                return replace(operator, inputs=tuple(map(self.of, operator.inputs)))
            case Aggregate():
                return self._aggregate(replace(operator, input=self.of(operator.input)))
            case Window():
                return _with_ties_broken(replace(operator, input=self.of(operator.input)))
            case Recompute():
                return operator
            case _:
                return replace(operator, input=self.of(operator.input))

    def _new(self, type: str, *, nullable: bool = True) -> Column:
        return Column(f"k{next(self._numbers)}", type, nullable)

    # --- joins ---

    def _join(self, join: Join) -> Operator:
        if join.null_aware:
            join = _without_null_rule(join)
        left, right, keys, conditions = list[Computed](), list[Computed](), list[tuple[str, str]](), list[str]()
        for (one, other), null_safe in zip(join.keys, join.null_safe or (False,) * len(join.keys), strict=True):
            mine, theirs = _column_of(join.left, one), _column_of(join.right, other)
            if not null_safe:
                keys.append((self._key(one, mine, left, join.left), self._key(other, theirs, right, join.right)))
                continue
            type = _type_of(one, join.left)
            zero = _ZEROS.get(type_of(type).family) if type else None
            if zero is None:
                conditions.append(f"({one} <=> {other})")
                continue
            zero = f"CAST({zero} AS {type})"
            for made in ("({} IS NULL)", f"COALESCE({{}}, {zero})"):
                of = "boolean" if "IS NULL" in made else str(type)
                a, b = self._new(of, nullable=False), self._new(of, nullable=False)
                left.append(Computed(a, made.format(one)))
                right.append(Computed(b, made.format(other)))
                keys.append((a.name, b.name))
        if join.condition is not None:
            conditions.append(join.condition)
        made_join = Join(
            join.kind,
            _with(join.left, left),
            _with(join.right, right),
            tuple(keys),
            (False,) * len(keys),
            " AND ".join(conditions) or None,
        )
        return made_join if not (left or right) else Project(made_join, tuple(_same(one) for one in join.columns))

    def _key(self, sql: str, column: Column | None, made: list[Computed], side: Operator) -> str:
        if column is not None:
            return column.name
        new = self._new(_type_of(sql, side) or "string")
        made.append(Computed(new, sql))
        return new.name

    # --- aggregates ---

    def _aggregate(self, aggregate: Aggregate) -> Aggregate:
        below = [Computed(one.column, one.sql) for one in aggregate.keys]
        keys = tuple(Computed(one.column, one.column.name) for one in aggregate.keys)
        calls = [self._linear_call(call, aggregate.input, below) for call in aggregate.calls]
        if all(call is not None for call in calls):
            source = Project(aggregate.input, tuple(below)) if below else aggregate.input
            return Aggregate(source, keys, tuple(call for call in calls if call))
        below = [Computed(one.column, one.sql) for one in aggregate.keys]
        taken = {one.column.name for one in below}
        used = set[str]().union(*(words(call.sql) for call in aggregate.calls))
        below += [_same(one) for one in aggregate.input.columns if one.name in used and one.name not in taken]
        return Aggregate(Project(aggregate.input, tuple(below)), keys, aggregate.calls)

    def _linear_call(self, call: Call, source: Operator, below: list[Computed]) -> Call | None:
        """The call over a column; None if sums and counts do not give it."""
        if call.function not in LINEAR or call.distinct or len(call.arguments) != 1 or call.order:
            return None
        (argument,) = call.arguments
        type = _type_of(argument, source)
        if call.function != "count" and (type is None or not is_exact(type)):
            return None
        if call.filter is None and not words(argument) & {one.name for one in source.columns}:
            return None if argument.upper() == "NULL" or call.function != "count" else replace(call, arguments=("1",))
        if call.filter is not None:
            argument = f"CASE WHEN {call.filter} THEN {argument} END"
        there = next((one for one in below if one.sql == argument), None)
        if there is None:
            # COUNT looks only at whether its argument is NULL, whatever the type.
            there = Computed(
                self._new(type or "boolean"),
                argument if type else f"(CASE WHEN {argument} IS NULL THEN NULL ELSE true END)",
            )
            below.append(there)
        name = there.column.name
        return replace(call, arguments=(name,), filter=None, sql=f"{call.function}({name})")


def _without_null_rule(join: Join) -> Join:
    """NOT IN: by its key if neither side has a NULL there, else by looking at every pair."""
    ((one, other),) = join.keys
    sides = (_column_of(join.left, one), _column_of(join.right, other))
    if all(side is not None and not side.nullable for side in sides):
        return replace(join, null_aware=False)
    rule = f"COALESCE(({one} = {other}), true)"
    condition = rule if join.condition is None else f"({rule} AND {join.condition})"
    return replace(join, keys=(), null_safe=(), condition=condition, null_aware=False)


def _with_ties_broken(window: Window) -> Window:
    """The order of a window goes on with all columns, where rows that tie would get results by chance."""
    last = [exp.Ordered(this=exp.column(one.name), nulls_first=True) for one in window.input.columns]
    functions = []
    for one in window.functions:
        node = sqlglot.parse_one(one.sql, dialect=ViewDialect)
        for over in node.find_all(exp.Window):
            if _depends_on_ties(over) and (order := over.args.get("order")) is not None:
                there = {str(part.this) for part in order.expressions}
                order.set(
                    "expressions", [*order.expressions, *(part.copy() for part in last if str(part.this) not in there)]
                )
        functions.append(Computed(one.column, spark_sql(node)))
    return replace(window, functions=tuple(functions))


_PEERS = (exp.CumeDist, exp.PercentRank, exp.Rank, exp.DenseRank)


def _depends_on_ties(over: exp.Window) -> bool:
    """Whether rows that tie may get different results: those of ranks do not, nor of a RANGE frame of sums."""
    function = over.this
    if isinstance(function, _PEERS) or function.key in ("rank", "denserank", "percentrank", "cumedist"):
        return False
    spec = over.args.get("spec")
    ranged = spec is None or spec.args.get("kind") == "RANGE"
    placed = isinstance(
        function,
        exp.RowNumber
        | exp.Lag
        | exp.Lead
        | exp.FirstValue
        | exp.LastValue
        | exp.NthValue
        | exp.Ntile
        | exp.First
        | exp.Last,
    )
    return placed or not ranged or isinstance(function, exp.ArrayAgg)


def _column_of(side: Operator, sql: str) -> Column | None:
    return next((one for one in side.columns if one.name == sql.strip("`() ")), None)


def _type_of(sql: str, side: Operator) -> str | None:
    """The type of an expression; None if only Spark knows."""
    if (column := _column_of(side, sql)) is not None:
        return column.type
    try:
        return computed_type(computation(sql, "", side.columns).node).name.lower()
    except ExpressionError:
        return None


def _same(column: Column) -> Computed:
    return Computed(column, column.name)


def _with(side: Operator, made: list[Computed]) -> Operator:
    return Project(side, (*map(_same, side.columns), *made)) if made else side
