"""The columns of a relation as they were registered, and what has become of them since.

    registered          found               rows are delivered as
    id INT, item TEXT   id, item, price     id, item                  a column more concerns no view
    id INT              id BIGINT           id, while it fits INT     a wider type concerns those that meet such a value
    id INT, item TEXT   id                  id, NULL                  a column less concerns those that read it

Rows keep the registered layout until the source is looked at again, which adds the new columns at the end: whatever is
stored of a relation stays in its place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from viewkeeper.sql.relation import Relation
from viewkeeper.sql.type_families import Family, type_named

Fits = Callable[[Any], bool]

VIEW = "{view}"
"""in a reason: the name of the view that is halted for it"""


@dataclass(frozen=True)
class Alteration:
    """What has become of a relation, and which of its columns that is about."""

    reason: str
    columns: frozenset[str] | None = None
    """None: all of them"""
    recomputable: bool = False
    """whether what the views hold can be computed again at once: it is all there, in a type that was widened"""


def widens(narrow: str, wide: str) -> bool:
    """Whether a type holds every value of another one of its family: BIGINT and INT, DECIMAL(12, 3) and (10, 2)."""
    one, other = type_named(narrow), type_named(wide)
    if one == other:
        return True
    if one.family is not other.family or one.family not in (Family.INTEGER, Family.DECIMAL):
        return False
    return one.scale <= other.scale and one.precision - one.scale <= other.precision - other.scale


def fits(registered: str, found: str) -> Fits | None:
    """Whether a value of the type that was found is one of the registered type; None if every one is."""
    if widens(found, registered):
        return None
    type = type_named(registered)
    if type.family is Family.INTEGER:
        low, high = type.bounds
        return lambda value: value is None or low <= value <= high
    most = 10 ** (type.precision - type.scale)
    unit = Decimal(1).scaleb(-type.scale)
    return lambda value: value is None or (abs(value) < most and value % unit == 0)


def laid_out(registered: Relation | None, found: Relation) -> Relation:
    """A relation as its rows are delivered: in the registered layout, if there is one."""
    if registered is None:
        return found
    lost = {*lost_columns(registered, found), *(column for column in registered.gone if column not in found.columns)}
    return replace(registered, key=found.key, gone=tuple(column for column in registered.columns if column in lost))


def lost_columns(registered: Relation, found: Relation) -> dict[str, str]:
    """The registered columns that can no longer be captured, and why."""
    now = dict(zip(found.columns, found.types, strict=True))
    lost = {}
    for column, type in zip(registered.columns, registered.types, strict=True):
        if column in registered.gone:
            continue
        if column not in now:
            lost[column] = f"the column {column} is gone"
        elif not widens(type, now[column]):
            lost[column] = f"the column {column} is {now[column]} and was {type}"
    return lost


def extended(registered: Relation | None, found: Relation, *, wider: bool) -> Relation:
    """A relation as it is registered from now on: columns stay in their places, new ones come last. Types stay too
    while they hold what they held, unless wider ones are to be taken."""
    if registered is None:
        return found
    now = dict(zip(found.columns, found.types, strict=True))
    before = dict(zip(registered.columns, registered.types, strict=True))
    columns = (*registered.columns, *(column for column in found.columns if column not in before))

    def type_of(column: str) -> str:
        if column in before and (column not in now or (widens(before[column], now[column]) and not wider)):
            return before[column]
        return now[column]

    gone = tuple(column for column in columns if column not in now)
    return Relation(found.name, found.source, columns, tuple(map(type_of, columns)), found.key, gone)


def alterations(registered: Relation, found: Relation | None) -> list[Alteration]:
    """What has become of a relation since it was registered, as far as its rows cannot be captured as they were."""
    if found is None:
        return [Alteration("the table is gone; put it back, or drop the view")]
    table = registered.name.partition(".")[2]
    return [
        Alteration(
            f"{reason}; put it back (ALTER TABLE {table} ...) and run 'viewkeeper reload {VIEW}', or define the view "
            "without it: 'viewkeeper create-view --replace'",
            frozenset({column}),
        )
        for column, reason in lost_columns(registered, found).items()
    ]


def misfit(relation: str, column: str, registered: str, value: object) -> Alteration:
    """A value that the registered type of a column does not hold, because the column was widened at the source."""
    return Alteration(
        f"the column {column} was widened, and holds {str(value)[:60]}, which is no {registered}; "
        f"'viewkeeper reload {VIEW}' takes the new type",
        frozenset({column}),
        recomputable=True,
    )


def retyped(before: Mapping[str, Relation], now: Mapping[str, Relation]) -> dict[str, frozenset[str]]:
    """The columns of relations that have another type."""
    found = {}
    for name, relation in before.items():
        types = dict(zip(now[name].columns, now[name].types, strict=True)) if name in now else {}
        columns = zip(relation.columns, relation.types, strict=True)
        found[name] = frozenset(column for column, type in columns if types.get(column, type) != type)
    return {name: columns for name, columns in found.items() if columns}
