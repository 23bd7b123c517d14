"""The definition of a view as its meaning: without text, aliases, and the order of what has none.

    a JOIN b ON a.id = b.id WHERE a.n > 1    =    b.id = a.id AND a.n > 1, over operands 0 and 1

Two definitions mean the same if these forms are equal, clause by clause.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from viewkeeper.durations import seconds
from viewkeeper.sql.definition import GLOBAL_TIMEOUT, INTERVAL, RETENTION
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.refresh_mode import PROPERTY as REFRESH
from viewkeeper.sql.refresh_mode import RefreshMode, refresh_of
from viewkeeper.sql.summary_view import Family, SummaryView, readable
from viewkeeper.sql.view import OverOperands, View

Parsed = View | OuterJoinView | SummaryView | Family

_DEFAULTS = {
    "consistency": "auto",
    "algorithm": "auto",
    "storage": "remote",
    "minmax": "node",
    "core": "none",
    "refresh_policy": "auto",
    "grouped": "true",
    "share": "false",
}


@dataclass(frozen=True)
class Meaning:
    """One clause after the other, each as something to compare and, where it helps, something to show."""

    kind: str
    tables: tuple[str, ...]
    columns: Mapping[str, tuple[str, object]]
    """by name, in order: how it reads, and what it means"""
    conditions: frozenset[object]
    joins: tuple[object, ...] = ()
    """of an outer join: kind and conditions of each step"""
    groups: frozenset[object] = frozenset()
    """of a family: all that tells its tables apart"""
    having: object = None


def meaning(parsed: Parsed) -> Meaning:
    """What a definition means, apart from its name and its properties."""
    if isinstance(parsed, Family):
        return _of_family(parsed)
    if isinstance(parsed, SummaryView):
        return _of_summary(parsed)
    place = _Places(parsed)
    columns = {
        column.name: (readable(column.expression), (place.of(column.expression), column.expression.type))
        for column in parsed.output
    }
    if isinstance(parsed, OuterJoinView):
        steps = tuple((str(step.kind), place.all_of(step.conditions)) for step in parsed.steps)
        return Meaning("an outer join", _tables(parsed), columns, place.all_of(parsed.where), steps)
    crossings = {("cross", pair) for pair in parsed.crossings}
    return Meaning("a join", _tables(parsed), columns, place.all_of(parsed.conditions) | crossings)


def properties_of(parsed: Parsed) -> dict[str, object]:
    """The properties that say something, each as what it means: a default says nothing, 60 minutes are an hour."""
    told: dict[str, object] = {}
    for name, value in parsed.properties:
        if name == REFRESH:
            refresh = refresh_of(parsed.properties)
            if refresh.mode is not RefreshMode.CONTINUOUS:
                told[name] = (str(refresh.mode), refresh.seconds)
        elif name in (RETENTION, GLOBAL_TIMEOUT, INTERVAL):
            told[name] = seconds(value)
        elif _DEFAULTS.get(name) != value:
            told[name] = value
    if isinstance(parsed, OuterJoinView) and told.get("storage") == "outerjoin":
        # Nothing else maintains it, so it is what an outer join has without the property.
        del told["storage"]
    return told


class _Places:
    """Expressions with the places of the operands instead of their aliases."""

    def __init__(self, view: OverOperands) -> None:
        self._places = {
            f"{operand.alias}.{column}": f"{operand.index}.{column}"
            for operand in view.operands
            for column in operand.relation.columns
        }

    def of(self, expression: Expression) -> object:
        pair = expression.equality
        if pair is not None:
            # The two sides of an equality have no order.
            return "=", *sorted(self._places[column] for column in pair)
        placed = expression.renamed(self._places)
        return placed.sql, placed.column_types

    def all_of(self, expressions: Iterable[Expression]) -> frozenset[object]:
        return frozenset(self.of(expression) for expression in expressions)


def _tables(view: OverOperands) -> tuple[str, ...]:
    return tuple(operand.relation.name for operand in view.operands)


def _of_summary(view: SummaryView) -> Meaning:
    place = _Places(view.core)
    groups = tuple(place.of(group) for group in view.groups)
    aggregates = tuple(
        (str(one.function), None if one.argument is None else place.of(one.argument)) for one in view.aggregates
    )
    # Over groups and aggregates, whose numbers depend on the order in which they are written.
    behind = {f"g.{n}": group for n, group in enumerate(groups)} | {f"a.{n}": one for n, one in enumerate(aggregates)}

    def means(expression: Expression) -> object:
        used = sorted(expression.columns, key=lambda column: repr(behind[column]))
        numbers = {column: f"x.{number}" for number, column in enumerate(used)}
        return expression.renamed(numbers).sql, tuple(behind[column] for column in used)

    return Meaning(
        "a summary",
        _tables(view.core),
        {column.name: (_shown(column.expression, view), means(column.expression)) for column in view.output},
        place.all_of(view.core.conditions),
        (),
        frozenset(groups),
        means(view.having) if view.having is not None else None,
    )


def _shown(expression: Expression, view: SummaryView) -> str:
    """A column of a summary as somebody would write it."""
    text = expression.sql
    for number in reversed(range(len(view.groups))):
        text = text.replace(f"`g.{number}`", readable(view.groups[number]))
    for number in reversed(range(len(view.aggregates))):
        text = text.replace(f"`a.{number}`", view.aggregates[number].name)
    return text


def _of_family(family: Family) -> Meaning:
    finest, padded = _of_summary(family.members[0].view), dict(family.members[0].padded)
    columns = {name: finest.columns.get(name, (padded[name], padded[name])) for name in family.columns}
    tables: set[object] = set()
    for member in family.members:
        one, shown = _of_summary(member.view), set(member.view.columns)
        constants = tuple((name, sql) for name, sql in member.padded if name not in shown)
        tables.add((member.view.name, one.groups, one.having, constants))
    return Meaning("a family of summaries", finest.tables, columns, finest.conditions, (), frozenset(tables))
