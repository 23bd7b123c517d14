"""From the definition of a summary to the table that stores it.

    shown column  =  SQL over stored columns        AVG(e) is SUM(e) / COUNT(e), HAVING a condition on rows

A group, COUNT(*), COUNT(e), SUM(e), MIN(e) or MAX(e) that the user names is stored under that name, so that any tool
reads it. What else is needed is stored beside them, under names of viewkeeper's own, and what is computed from it when
it is read.
"""

from dataclasses import dataclass

from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.summary_view import Aggregate, Function, SummaryView, aggregate_column, group_column
from viewkeeper.sql.type_families import type_named
from viewkeeper.summary.measures import (
    EXTREMES,
    OF_ALL_VALUES,
    ExtremeFunction,
    Measure,
    Needed,
    is_spread_of_values,
    needed,
)
from viewkeeper.summary.node import COUNT, Node, rest_column
from viewkeeper.summary.star import Star, star_of
from viewkeeper.summary.statements import quoted, spelled_out


@dataclass(frozen=True)
class Defined:
    """A summary as it is stored: its node, its extremes (column, function, e) and what readers see."""

    view: SummaryView
    star: Star
    node: Node
    extremes: tuple[tuple[str, ExtremeFunction, Expression], ...]
    shown: tuple[tuple[str, str], ...]
    """name and SQL of each column that readers see"""
    having: str | None

    @property
    def visible(self) -> tuple[str, ...]:
        """The stored columns that readers see as they are, in the order of the definition."""
        return tuple(name for name, sql in self.shown if sql == quoted(name))


def defined(view: SummaryView, *, recompute: bool = False) -> Defined:
    """The table of a summary; UnsupportedClause if its join is no star."""
    star = star_of(view.core)
    return _Definer(view, star, recompute).made()


class _Definer:
    def __init__(self, view: SummaryView, star: Star, recompute: bool) -> None:
        self._view, self._star, self._recompute = view, star, recompute
        self._plain: dict[str, str] = {}
        for column in view.output:
            if (name := column.expression.is_column) is not None:
                self._plain.setdefault(name, column.name)
        self._groups: dict[Expression, str] = {}
        self._group_columns: dict[str, str] = {}
        self._measures: dict[Measure, str] = {}
        self._extremes: list[tuple[str, ExtremeFunction, Expression]] = []
        self._sql: dict[str, str] = {}
        self._count = COUNT

    def made(self) -> Defined:
        view, star = self._view, self._star
        for index, group in enumerate(view.groups):
            self._add_group(group_column(index), group.renamed(star.renaming))
        arguments = [
            one.argument.renamed(star.renaming) if one.argument is not None else None for one in view.aggregates
        ]
        # Those that are shown as they are get their names first, counts before the sums that need them too; others then
        # find them stored.
        order = sorted(
            range(len(arguments)),
            key=lambda index: (
                aggregate_column(index) not in self._plain,
                view.aggregates[index].function is not Function.COUNT,
            ),
        )
        for index in order:
            self._add_aggregate(aggregate_column(index), view.aggregates[index], arguments[index])
        node = Node(
            view.name,
            star.fact.name,
            star.dimensions,
            star.where,
            self._groups,
            self._measures,
            self._count,
        )
        having = self._rendered(view.having) if view.having is not None else None
        shown = tuple((column.name, self._rendered(column.expression)) for column in view.output)
        return Defined(view, star, node, tuple(self._extremes), shown, having)

    def _add_group(self, name: str, group: Expression) -> None:
        if group not in self._groups:
            self._groups[group] = self._plain.get(name, f"_vk_group_{len(self._groups)}")
        self._sql[name] = quoted(self._groups[group])

    def _add_aggregate(self, name: str, aggregate: Aggregate, argument: Expression | None) -> None:
        if argument is None:
            if self._count == COUNT:
                self._count = self._plain.get(name, COUNT)
            self._sql[name] = quoted(self._count)
        elif aggregate.function in EXTREMES:
            self._sql[name] = self._extreme(name, aggregate, argument)
        else:
            self._refuse_unknown_type(aggregate, argument)
            behind = needed(aggregate, argument)
            named = self._plain.get(name)
            for measure in behind.all():
                if measure not in self._measures:
                    own = named is not None and measure == self._shown_as_it_is(aggregate, behind)
                    prefix = "_vk_number" if measure.kind == "count" else "_vk_sum"
                    self._measures[measure] = named if own and named else f"{prefix}_{len(self._measures)}"
            spread = self._spread(argument) if is_spread_of_values(aggregate, argument) else None
            self._sql[name] = self._formula(aggregate, behind, spread)

    @staticmethod
    def _shown_as_it_is(aggregate: Aggregate, behind: Needed) -> Measure | None:
        """The measure that is the aggregate itself."""
        if aggregate.function is Function.COUNT:
            return behind.count
        return behind.total if aggregate.function is Function.SUM and not behind.odd else None

    def _extreme(self, name: str, aggregate: Aggregate, argument: Expression) -> str:
        if argument in self._groups:
            # Within a group there is one value.
            value = quoted(self._groups[argument])
            return value if aggregate.function is not Function.COUNT_DISTINCT else f"IF({value} IS NULL, 0L, 1L)"
        function = EXTREMES[aggregate.function]
        column = self._stored_extreme(function, argument, self._plain.get(name))
        if self._recompute and function not in OF_ALL_VALUES:
            self._measures.setdefault(Measure("count", argument), f"_vk_number_{len(self._measures)}")
        return quoted(column)

    def _stored_extreme(self, function: ExtremeFunction, argument: Expression, named: str | None = None) -> str:
        for stored, same, of in self._extremes:
            if same == function and of == argument:
                return stored
        column = named or f"_vk_extreme_{len(self._extremes)}"
        self._extremes.append((column, function, argument))
        return column

    def _spread(self, argument: Expression) -> str:
        """Σ (e - mean)² of DOUBLE."""
        if argument in self._groups:
            # Within a group there is one value: 0, and NaN if that is not finite.
            value = f"CAST({quoted(self._groups[argument])} AS DOUBLE)"
            return f"({value} - {value})"
        return quoted(self._stored_extreme("spread", argument))

    def _formula(self, aggregate: Aggregate, behind: Needed, spread: str | None) -> str:
        """What readers see of an aggregate, over stored columns."""
        column = {measure: quoted(stored) for measure, stored in self._measures.items()}
        assert behind.count is not None
        count = column[behind.count]
        if spread is not None:
            return _variance(aggregate.function, count, spread)
        if behind.total is None:
            return count
        total, odd = column[behind.total], tuple(column[one] for one in behind.odd)
        if odd:
            stored = self._measures[behind.total]
            total = f"({total} + COALESCE({quoted(rest_column(stored))}, 0D))"
        if aggregate.function is Function.SUM:
            return _unless_odd(total, odd, count)
        if aggregate.function is Function.AVG:
            if type_named(aggregate.type).name == "DOUBLE":
                return _unless_odd(f"CAST({total} AS DOUBLE) / NULLIF({count}, 0)", odd, count)
            return f"CAST({total} / CAST(NULLIF({count}, 0) AS DECIMAL(20, 0)) AS {aggregate.type})"
        assert behind.squares is not None
        scale = type_named(behind.total.expression.type).scale
        return _variance(aggregate.function, count, _exact_spread(count, total, column[behind.squares], scale))

    def _rendered(self, expression: Expression) -> str:
        """An expression over groups and aggregates, as SQL over stored columns."""
        alone = expression.is_column is not None
        parts = {name: sql if alone or _is_column(sql) else f"({sql})" for name, sql in self._sql.items()}
        return spelled_out(expression, parts)

    def _refuse_unknown_type(self, aggregate: Aggregate, argument: Expression) -> None:
        if aggregate.function is not Function.COUNT and not type_named(argument.type).numeric:
            raise UnsupportedClause(
                f"{self._view.name}: the type of what {aggregate.name} adds up is not known to be a number",
                "write CAST(... AS BIGINT), AS DECIMAL(p, s) or AS DOUBLE inside it",
            )


def _is_column(sql: str) -> bool:
    return sql.startswith("`") and sql.count("`") == 2


def _unless_odd(value: str, odd: tuple[str, ...], count: str) -> str:
    """A sum of DOUBLE whose values may be NaN or infinite; NULL without any value."""
    if not odd:
        return value
    nan, infinite, negative = odd
    return (
        f"CASE WHEN {count} = 0 THEN NULL WHEN {nan} > 0 OR ({infinite} > 0 AND {negative} > 0) THEN DOUBLE('NaN') "
        f"WHEN {infinite} > 0 THEN DOUBLE('Infinity') WHEN {negative} > 0 THEN DOUBLE('-Infinity') "
        f"ELSE COALESCE({value}, 0D) END"
    )


def _exact_spread(count: str, total: str, squares: str, scale: int) -> str:
    """M = Σ (x - mean)² = Q - c (S + r) - r² / n, with c the mean, rounded, and r = S - n c, of n exact numbers.

    Q = Σ x² and S = Σ x are large beside M, and c (S + r) is no larger than Q: so DECIMAL has room for it if it has for
    Q, and what is left is small. All of it is in units of the last digit, 10^-scale.
    """
    n = f"CAST({count} AS DECIMAL(20, 0))"
    s = f"CAST({total} * CAST({10**scale} AS DECIMAL({scale + 1}, 0)) AS DECIMAL(38, 0))" if scale else total
    s = f"CAST({s} AS DECIMAL(38, 0))"
    c = f"CAST({s} / CAST(NULLIF({count}, 0) AS DECIMAL(20, 0)) AS DECIMAL(38, 0))"
    less = f"try_subtract(try_multiply({n}, {c}), {s})"
    rest = f"CAST({less} AS DOUBLE)"
    far = f"CAST(try_subtract({squares}, try_multiply({c}, try_subtract({s}, {less}))) AS DOUBLE)"
    spread = f"GREATEST({far} - {rest} * {rest} / NULLIF(CAST({count} AS DOUBLE), 0D), 0D)"
    return f"({spread} / {10 ** (2 * scale)}D)" if scale else spread


def _variance(function: Function, count: str, spread: str) -> str:
    """Σ (x - mean)² / (n - 1), or over n for the whole population."""
    sample = function in (Function.VAR_SAMP, Function.STDDEV_SAMP)
    n = f"CAST({count} AS DOUBLE)"
    value = f"{spread} / NULLIF({n} - 1D, 0D)" if sample else f"{spread} / NULLIF({n}, 0D)"
    if sample:
        value = f"CASE WHEN {count} > 1 THEN {value} END"
    return f"SQRT({value})" if function in (Function.STDDEV_SAMP, Function.STDDEV_POP) else value
