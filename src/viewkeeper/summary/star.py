"""A star: one fact, and dimensions joined to it along foreign keys, also in chains.

    fact.storeID = stores.storeID        stores is a dimension: the columns that it is joined by are its whole key
    stores.cityID = cities.cityID        cities is one too, reached through stores

Each row of the fact meets at most one row of each dimension. Sources are autonomous, so it may meet none: then it is in
no table that joins the dimension, until the row arrives.

Views write aliases of their own. Here every column has one name, whoever writes it: that of the fact is `fact`, that of
a dimension its path, so that expressions of two views are equal if they mean the same.
"""

from dataclasses import dataclass
from functools import cached_property

from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.type_families import parse_type, type_name
from viewkeeper.sql.view import Operand, View

FACT = "fact"


@dataclass(frozen=True)
class Dimension:
    """A dimension where it is joined: a table that is joined along two foreign keys is two of them."""

    path: str
    relation: Relation
    on: tuple[tuple[str, str], ...]
    """pairs of a column of the fact or of another dimension, and the column of the key that it must equal"""
    types: tuple[str, ...]
    """of the columns of the fact or of the other dimension, as Spark writes them: a key may be of another type"""

    @cached_property
    def columns(self) -> dict[str, str]:
        """Its columns, as they are named in a star, with their names in the relation."""
        return {f"{self.path}.{column}": column for column in self.relation.columns}

    def type_of(self, column: str) -> str:
        """The type of a column of the relation, as Spark writes it."""
        return type_name(parse_type(self.relation.types[self.relation.columns.index(column)]))

    @property
    def short(self) -> str:
        """As a reader would call it: the last part of the relation's name."""
        return self.relation.name.rpartition(".")[2]


@dataclass(frozen=True)
class Star:
    """The join of a summary: a fact and its dimensions, each after those that it is reached through."""

    fact: Relation
    dimensions: tuple[Dimension, ...]
    where: frozenset[Expression]
    """the conditions that are not foreign keys"""
    names: tuple[tuple[str, str], ...]
    """what each column of the view is called in the star"""

    @cached_property
    def renaming(self) -> dict[str, str]:
        return dict(self.names)


def star_of(view: View) -> Star:
    """The star that a join is; UnsupportedClause if it is none, with what is missing."""
    found = [star for operand in view.operands if (star := _star_from(view, operand)) is not None]
    if not found:
        raise _no_star(view)
    return found[0]


def _star_from(view: View, fact: Operand) -> Star | None:
    """The star around an operand, if foreign keys lead from it to all others."""
    names = {column: f"{FACT}.{bare}" for column, bare in zip(fact.columns, fact.relation.columns, strict=True)}
    types = _types(view)
    dimensions: list[Dimension] = []
    used: set[Expression] = set()
    remaining = [operand for operand in view.operands if operand.index != fact.index]
    while remaining:
        reached = None
        for operand in remaining:
            if (keyed := _foreign_key(view, operand, names)) is not None:
                reached = operand, *keyed
                break
        if reached is None:
            return None
        operand, pairs, conditions = reached
        remaining.remove(operand)
        used |= conditions
        on = tuple((names[column], key) for column, key in pairs)
        dimension = Dimension(
            _path(operand.relation, on), operand.relation, on, tuple(types[column] for column, _ in pairs)
        )
        dimensions.append(dimension)
        names |= {
            column: f"{dimension.path}.{bare}"
            for column, bare in zip(operand.columns, operand.relation.columns, strict=True)
        }
    where = frozenset(condition.renamed(names) for condition in view.conditions if condition not in used)
    return Star(fact.relation, tuple(dimensions), where, tuple(names.items()))


def _foreign_key(
    view: View, operand: Operand, names: dict[str, str]
) -> tuple[tuple[tuple[str, str], ...], set[Expression]] | None:
    """What joins the whole key of an operand: columns that are reached already, as the view names them, each with the
    column of the key; and the conditions that say so."""
    if operand.key is None:
        return None
    on: list[tuple[str, str]] = []
    conditions: set[Expression] = set()
    for key, bare in zip(operand.key, operand.relation.key or (), strict=True):
        for condition in view.conditions:
            left, right = condition.equality or ("", "")
            if right == key:
                left, right = right, left
            if left == key and right in names:
                on.append((right, bare))
                conditions.add(condition)
                break
        else:
            return None
    return tuple(on), conditions


def _types(view: View) -> dict[str, str]:
    """The types of the columns of a view's operands, as Spark writes them."""
    return {
        column: type_name(parse_type(type))
        for operand in view.operands
        for column, type in zip(operand.columns, operand.relation.types, strict=True)
    }


def _path(relation: Relation, on: tuple[tuple[str, str], ...]) -> str:
    """A name for a dimension that tells how it is reached; flat names allow no dot in it."""
    keys = "+".join(column.removeprefix(f"{FACT}.") for column, _ in on)
    return f"{keys}>{relation.name}".replace(".", "/")


def _no_star(view: View) -> UnsupportedClause:
    keyless = [operand.relation.name for operand in view.operands if operand.key is None]
    reason = (
        f"{', '.join(keyless)} {'has' if len(keyless) == 1 else 'have'} no key that is known"
        if len(keyless) > 1
        else "a dimension is joined by all columns of its key, each equal to a column of the fact or another dimension"
    )
    return UnsupportedClause(
        f"{view.name} does not join a fact with dimensions along foreign keys: {reason}",
        "declare the keys with the source, or make the join a view of its own and summarize that",
    )
