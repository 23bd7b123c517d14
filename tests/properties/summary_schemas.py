"""Random stars: a fact, dimensions along foreign keys, their rows, and changes of all of them at once.

    f ─▶ d0 ─▶ d1        chains          f ═▶ d2     the same table along two foreign keys
    f ─▶ d3 (k1, k2)     composite keys  NULL        in every column that is no key

Rows come from small domains, so that groups are shared, vanish and come back. Facts are a bag: they have no key.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from math import inf, nan
from typing import Any

from viewkeeper.clock import Random

Row = tuple[Any, ...]
Bag = Counter[Row]

FACT = "f"
VALUES: dict[str, tuple[Any, ...]] = {
    "INT": (-3, -1, 0, 1, 2, 5),
    "BIGINT": (-(10**10), -7, 0, 4, 10**12),
    "DECIMAL(8, 2)": (Decimal("-1.25"), Decimal("0.00"), Decimal("2.50"), Decimal("99.99")),
    "DATE": (date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29), date(2025, 7, 1)),
    "STRING": ("", "a", "A", "b", "é"),
    "BOOLEAN": (False, True),
    "DOUBLE": (-1.5, 0.0, 0.5, 2.0),
}
ODD = (nan, inf, -inf, -0.0)
NULLS = 0.15
"""how often a value is NULL"""
FEW = 10
"""facts, of which more are wanted"""


@dataclass(frozen=True)
class Table:
    """A table with the types of its columns; the key of a dimension comes first."""

    name: str
    columns: dict[str, str]
    key: tuple[str, ...] = ()
    hierarchy: tuple[str, ...] = ()
    """columns of which each determines the next"""

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self.columns.values())

    def value(self, row: Row, column: str) -> Any:
        return row[list(self.columns).index(column)]

    def key_of(self, row: Row) -> Row:
        return row[: len(self.key)]


@dataclass(frozen=True)
class Role:
    """A dimension where it is joined: from the fact, or from another dimension in its role."""

    table: Table
    columns: tuple[str, ...]
    """the foreign key, in the table that it is joined from"""
    behind: "Role | None" = None

    @property
    def chain(self) -> "tuple[Role, ...]":
        return (*(self.behind.chain if self.behind else ()), self)


@dataclass(frozen=True)
class Schema:
    """A star."""

    fact: Table
    dimensions: tuple[Table, ...]
    roles: tuple[Role, ...]
    odd: bool
    """whether there are NaN and infinities"""

    @property
    def tables(self) -> dict[str, Table]:
        return {table.name: table for table in (self.fact, *self.dimensions)}


def random_schema(rng: Random, *, odd: bool = False, hierarchies: bool = True) -> Schema:
    """A fact with one to three foreign keys."""
    return _Maker(rng, hierarchies).schema(odd)


@dataclass
class _Maker:
    rng: Random
    hierarchies: bool
    dimensions: list[Table] = field(default_factory=list)
    links: dict[str, list[tuple[tuple[str, ...], Table]]] = field(default_factory=dict)

    def schema(self, odd: bool) -> Schema:
        keys: dict[str, str] = {}
        links: list[tuple[tuple[str, ...], Table]] = []
        for number in range(self.rng.choice([1, 2, 2, 3])):
            table = self.dimension(deep=self.rng.choice([0, 0, 1, 2]))
            for role in range(2 if self.rng.random() < 0.25 else 1):
                columns = tuple(f"fk{number}_{role}_{key}" for key in table.key)
                links.append((columns, table))
                keys |= {name: self._of_key(table.columns[key]) for name, key in zip(columns, table.key, strict=True)}
        fact = Table(FACT, {**keys, **self.attributes(3, 5)})
        self.links[FACT] = links
        return Schema(fact, tuple(self.dimensions), tuple(self.roles(fact, None)), odd)

    def _of_key(self, type: str) -> str:
        """Foreign keys may be wider or narrower than what they refer to."""
        return self.rng.choice([type, type, "BIGINT", "INT"]) if type in ("INT", "BIGINT") else type

    def dimension(self, deep: int) -> Table:
        up = [self.dimension(deep - 1)] if deep else []
        composite = self.rng.random() < 0.25
        key = {"k1": "INT", "k2": "STRING"} if composite else {"k": self.rng.choice(["INT", "BIGINT", "STRING"])}
        columns: dict[str, str] = dict(key)
        links = []
        for target in up:
            own = tuple(f"up_{name}" for name in target.key)
            columns |= {column: target.columns[name] for column, name in zip(own, target.key, strict=True)}
            links.append((own, target))
        attributes = self.attributes(1, 3)
        ordered = self.hierarchies and not composite and len(attributes) > 1 and self.rng.random() < 0.6
        hierarchy = (*key, *list(attributes)[:2]) if ordered else ()
        table = Table(f"d{len(self.dimensions)}", {**columns, **attributes}, tuple(key), hierarchy)
        self.dimensions.append(table)
        self.links[table.name] = links
        return table

    def attributes(self, least: int, most: int) -> dict[str, str]:
        return {f"a{n}": self.rng.choice(list(VALUES)) for n in range(self.rng.randint(least, most))}

    def roles(self, table: Table, behind: Role | None) -> list[Role]:
        found = []
        for columns, target in self.links[table.name]:
            role = Role(target, columns, behind)
            found += [role, *self.roles(target, role)]
        return found


class Model:
    """The rows of a star, and what happens to them."""

    def __init__(self, schema: Schema, rng: Random, facts: int) -> None:
        self.schema, self.rng = schema, rng
        self._above: dict[tuple[str, Any], Any] = {}
        """in a hierarchy: what each value determines"""
        self.rows: dict[str, Bag] = {name: Counter() for name in schema.tables}
        self.gone: list[Row] = []
        """facts that were there once"""
        for table in schema.dimensions:
            # Most keys have their row, so that most facts are in the summaries that join.
            self.apply({table.name: Counter(self._dimension_rows(table, self.rng.choice([3, 12, 20, 20])))})
        self.apply({FACT: Counter(self.fact() for _ in range(facts))})

    def copy(self) -> dict[str, Bag]:
        return {name: Counter(bag) for name, bag in self.rows.items()}

    def apply(self, changes: dict[str, Bag]) -> None:
        for name, change in changes.items():
            bag = self.rows[name]
            for row, weight in change.items():
                bag[row] += weight
                assert bag[row] >= 0, (name, row)
                if name == FACT and weight < 0:
                    self.gone.append(row)
            self.rows[name] = +bag

    # --- rows ---

    def value(self, type: str) -> Any:
        if self.rng.random() < NULLS:
            return None
        domain = VALUES[type]
        if type == "DOUBLE" and self.schema.odd:
            domain = (*domain, *ODD)
        return self.rng.choice(domain)

    def key_value(self, type: str) -> Any:
        return self.rng.choice(VALUES["STRING"][1:3] if type == "STRING" else range(1, 5))

    def fact(self) -> Row:
        """A fact. Foreign keys have the domain of keys, whether or not the row of the dimension is there."""
        return tuple(
            (None if self.rng.random() < NULLS / 2 else self.key_value(type))
            if name.startswith("fk")
            else self.value(type)
            for name, type in self.schema.fact.columns.items()
        )

    def dimension_row(self, table: Table, key: Row) -> Row:
        made: dict[str, Any] = dict(zip(table.key, key, strict=True))
        for name, type in table.columns.items():
            if name in made:
                continue
            if name.startswith("up_"):
                made[name] = None if self.rng.random() < NULLS else self.key_value(type)
            elif table.hierarchy and name == table.hierarchy[2]:
                made[name] = self._determined(table, made[table.hierarchy[1]])
            else:
                made[name] = self.value(type)
        return tuple(made.values())

    def _determined(self, table: Table, value: Any) -> Any:
        place = (table.name, _spelled(value))
        if place not in self._above:
            self._above[place] = self.value(table.columns[table.hierarchy[2]])
        return self._above[place]

    def _dimension_rows(self, table: Table, count: int) -> list[Row]:
        there = {table.key_of(row) for row in self.rows[table.name]}
        keys = {tuple(self.key_value(table.columns[name]) for name in table.key) for _ in range(count)}
        return [self.dimension_row(table, key) for key in sorted(keys - there, key=repr)]

    # --- changes ---

    def change(self) -> dict[str, Bag]:
        """What a commit does; the model is changed already."""
        kind = self.rng.choice(["facts"] * 6 + ["dimensions"] * 4 + ["both"] * 8 + ["nothing", "all facts"])
        if self.rows[FACT].total() < FEW:
            kind = self.rng.choice(["both", "nothing", "refill", "refill"])
        changes: dict[str, Bag] = {}
        if kind in ("facts", "both"):
            changes[FACT] = self._fact_change()
        if kind in ("dimensions", "both"):
            for table in self.schema.dimensions:
                if self.rng.random() < 0.6:
                    changes[table.name] = self._dimension_change(table)
        if kind == "refill":
            changes[FACT] = Counter(self.fact() for _ in range(2 * FEW))
        if kind == "all facts":
            changes[FACT] = Counter({row: -count for row, count in self.rows[FACT].items()})
        self.apply(changes)
        return changes

    def _fact_change(self) -> Bag:
        rng, there = self.rng, self.rows[FACT]
        rows = sorted(there.elements(), key=repr)
        change: Bag = Counter()
        kind = rng.choice(["any", "any", "insert", "delete", "extreme", "group", "back", "update", "copies"])
        if kind in ("any", "insert"):
            change.update(self.fact() for _ in range(rng.randint(2, 8)))
        if kind in ("any", "delete"):
            change.subtract(rng.sample(rows, rng.randint(0, min(4, len(rows)))))
        if kind in ("extreme", "group") and rows:
            column = rng.choice(list(self.schema.fact.columns))
            values = [self.schema.fact.value(row, column) for row in rows]
            known = sorted({value for value in values if value is not None and value == value})
            if known:
                wanted = rng.choice([known[0], known[-1]]) if kind == "extreme" else rng.choice(known)
                change.subtract(row for row, value in zip(rows, values, strict=True) if value == wanted)
        if kind == "back":
            change.update(rng.sample(self.gone, min(3, len(self.gone))))
        if kind == "copies" and rows:
            change.update(rng.choices(rows, k=2))
        if kind == "update":
            for row in rng.sample(rows, min(3, len(rows))):
                new = list(row)
                place = rng.randrange(len(new))
                new[place] = self.fact()[place]
                change.subtract([row])
                change.update([tuple(new)])
        return change

    def _dimension_change(self, table: Table) -> Bag:
        rng, change = self.rng, Counter[Row]()
        rows = sorted(self.rows[table.name], key=repr)
        kind = rng.choice(["new", "new", "gone", "update", "update", "any", "moved"])
        if kind in ("new", "any"):
            change.update(self._dimension_rows(table, rng.randint(2, 8)))
        if kind in ("gone", "any") and rows:
            change.subtract(rng.sample(rows, rng.randint(1, min(2, len(rows)))))
        if kind == "update":
            for row in rng.sample(rows, min(2, len(rows))):
                change.subtract([row])
                change.update([self.dimension_row(table, table.key_of(row))])
        if kind == "moved" and table.hierarchy and rows:
            self._move(table, rng.choice(rows), rows, change)
        return change

    def _move(self, table: Table, like: Row, rows: list[Row], change: Bag) -> None:
        """A whole level of the hierarchy gets another parent: all rows of it at once."""
        names = list(table.columns)
        level, parent = (names.index(name) for name in table.hierarchy[1:])
        new = self._above[table.name, _spelled(like[level])] = self.value(table.types[parent])
        for row in rows:
            if _spelled(row[level]) == _spelled(like[level]):
                change.subtract([row])
                change.update([(*row[:parent], new, *row[parent + 1 :])])


def _spelled(value: Any) -> str:
    """A value as a name: 0.0 and -0.0 are one."""
    return repr(value + 0.0 if isinstance(value, float) else value)
