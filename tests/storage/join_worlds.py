"""Random joins, and random batches of changes to the tables under them.

A world has two to four tables, with and without keys, and a view over them: an inner join, or a mix of outer joins.
Values are few, so that rows often join, lose their partners and find others; some are NULL. Changes insert, delete and
modify; keys come back, rows without a key are there several times.
"""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from outer_join_reference import evaluated

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import seeded
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View

Row = tuple[Any, ...]
COLUMNS = ("id", "a", "b", "c", "t")
TYPES = ("INT", "INT", "INT", "DECIMAL(6,2)", "STRING")


@dataclass
class World:
    """Tables, a view over them, and a source of changes."""

    seed: int
    outer: bool = False
    types: tuple[str, ...] = TYPES
    properties: str = ""
    sources: int = 2
    tables: dict[str, Counter[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = seeded(self.seed)
        names = [f"s{number % self.sources + 1}.t{number}" for number in range(self.random.randint(2, 4))]
        self.relations = {name: self._relation(name) for name in names}
        self.tables = {name: Counter() for name in names}
        self.sql = self._sql(names)
        view = parse_definition(self.sql, self.relations)
        assert isinstance(view, View | OuterJoinView)
        self.view: View | OuterJoinView = view

    def _relation(self, name: str) -> Relation:
        keyed = self.random.random() < 0.7
        key = None if not keyed else ("id",) if self.random.random() < 0.8 else ("id", "t")
        return Relation(name, name.split(".")[0], COLUMNS, self.types, key)

    # --- the definition ---

    def _sql(self, names: list[str]) -> str:
        choose = self.random
        if choose.random() < 0.15:
            names = [*names[:-1], names[0]]
        aliases = [f"x{number}" for number in range(len(names))]
        kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] if self.outer else ["JOIN"]
        joins = [f"{names[0]} {aliases[0]}"]
        outer = False
        for number in range(1, len(names)):
            kind = choose.choice(kinds)
            if self.outer and number == len(names) - 1 and not outer:
                kind = choose.choice(kinds[1:])
            outer = outer or kind != "JOIN"
            joins.append(f"{kind} {names[number]} {aliases[number]} ON {self._on(aliases, number)}")
        shown = [f"{alias}.{column}" for alias in aliases for column in COLUMNS if choose.random() < 0.4]
        if choose.random() < 0.3:
            shown.append(f"{aliases[0]}.a + {aliases[-1]}.b")
        shown = shown or [f"{aliases[0]}.a"]
        output = ", ".join(f"{sql} AS o{number}" for number, sql in enumerate(shown))
        where = ""
        if choose.random() < 0.3:
            where = f" WHERE {choose.choice(aliases)}.b {choose.choice(['>', '<>', '<='])} {choose.randint(0, 2)}"
        return f"CREATE MATERIALIZED VIEW v {self.properties} AS SELECT {output} FROM {' '.join(joins)}{where}"

    def _on(self, aliases: list[str], number: int) -> str:
        choose, right = self.random, aliases[number]
        left = choose.choice(aliases[:number])
        column = choose.choice(["a", "b", "id"])
        conditions = [f"{left}.{choose.choice(['a', 'b', column])} = {right}.{column}"]
        if choose.random() < 0.15:
            conditions.append(f"{choose.choice(aliases[:number])}.c = {right}.c")
        if choose.random() < 0.3:
            conditions.append(f"{choose.choice(aliases[:number])}.a {choose.choice(['<', '<>', '>='])} {right}.b")
        if choose.random() < 0.15:
            conditions.append(f"{choose.choice([right, aliases[0]])}.t <> 'w'")
        return " AND ".join(conditions)

    # --- changes ---

    def batch(self) -> dict[str, MemoryZSet]:
        """Changes of some tables, which are then made."""
        changes = {}
        for name in self.relations:
            changed = Counter(self.tables[name])
            for _ in range(self.random.choice([0, 1, 3, 8, 12])):
                self._change(self.relations[name], changed)
            delta = Counter(changed)
            delta.subtract(self.tables[name])
            changes[name] = MemoryZSet(COLUMNS, delta.items())
            self.tables[name] = +changed
        return changes

    def _change(self, relation: Relation, rows: Counter[Row]) -> None:
        there = [row for row, count in rows.items() if count > 0]
        if there and self.random.random() < 0.4:
            row = self.random.choice(sorted(there, key=repr))
            rows[row] -= 1
            if self.random.random() < 0.5:
                self._insert(relation, rows, (row[0], *self._row()[1:4], row[4]))
        else:
            self._insert(relation, rows, self._row())

    def _insert(self, relation: Relation, rows: Counter[Row], row: Row) -> None:
        taken = {relation.key_of(one) for one, count in rows.items() if count > 0} if relation.key else set()
        if relation.key is None or relation.key_of(row) not in taken:
            rows[row] += 1

    def _row(self) -> Row:
        def small() -> int | None:
            return None if self.random.random() < 0.1 else self.random.randint(0, 2)

        amounts = (1, -2) if self.types[3] == "BIGINT" else (Decimal("1.50"), Decimal("-2.00"))
        cents = self.random.choice([None, *amounts])
        return (self.random.randint(0, 11), small(), small(), cents, self.random.choice(["u", "u", "v", "w"]))

    # --- what the view should be ---

    def expected(self) -> Counter[Row]:
        if isinstance(self.view, OuterJoinView):
            return evaluated(self.view, {name: list(rows.elements()) for name, rows in self.tables.items()})
        contents = {name: MemoryZSet(COLUMNS, rows.items()) for name, rows in self.tables.items()}
        return Counter(dict(JoinPlan(self.view).evaluate(contents).weights()))
