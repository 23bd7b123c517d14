"""Random relations, contents and views: small domains, so that joins meet and updates interfere.

Names are plain and the SQL is standard, so that a history can be judged by any SQL engine.
"""

from dataclasses import dataclass

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import Random
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View

NUMBERS = (0, 1, 2, None)
WORDS = ("x", "X", "", None)
OFTEN = (6, 4, 1, 1)
"""how often each of them comes up: most rows meet a partner, some do not, NULLs never"""
KEYS = 12
"""How many keys a relation draws from: few enough that keys are used again."""


@dataclass(frozen=True)
class Domain:
    """Random rows of one relation."""

    relation: Relation

    def row(self, random: Random, key: tuple[object, ...] | None = None) -> tuple[object, ...]:
        """A random row, with the given key if the relation has one."""
        values: list[object] = []
        for column, kind in zip(self.relation.columns, self.relation.types, strict=True):
            if key is not None and self.relation.key and column in self.relation.key:
                values.append(key[self.relation.key.index(column)])
            else:
                values.append(random.choices(WORDS if kind == "VARCHAR" else NUMBERS, OFTEN)[0])
        return tuple(values)

    def key(self, random: Random) -> tuple[object, ...]:
        """A random key value."""
        assert self.relation.key is not None
        if len(self.relation.key) == 1:
            return (random.randrange(KEYS),)
        return tuple(random.randrange(4) for _ in self.relation.key)


def random_relations(random: Random, relations: int, sources: int, *, keyless: bool) -> dict[str, Relation]:
    """`relations` relations dealt to `sources` sources, each of which gets at least one."""
    places = [*range(sources), *(random.randrange(sources) for _ in range(relations - sources))]
    random.shuffle(places)
    made: dict[str, Relation] = {}
    for number, place in enumerate(places, start=1):
        key: tuple[str, ...] = ("k", "h") if random.random() < 0.2 else ("k",)
        columns = (*key, "a", "b") + (("t",) if random.random() < 0.4 else ())
        if keyless:
            columns = columns[len(key) :]
        types = tuple("VARCHAR" if column == "t" else "BIGINT" for column in columns)
        name = f"s{place + 1}.r{number}"
        made[name] = Relation(name, f"s{place + 1}", columns, types, None if keyless else key)
    return made


def random_rows(random: Random, relation: Relation) -> MemoryZSet:
    """An initial content of a few rows, with unique keys if there is a key."""
    domain = Domain(relation)
    if relation.key is None:
        rows = [domain.row(random) for _ in range(random.randint(3, 6))]
    else:
        keys = {domain.key(random) for _ in range(random.randint(3, 6))}
        rows = [domain.row(random, key) for key in sorted(keys)]
    return MemoryZSet(relation.columns, ((row, 1) for row in rows))


def random_view(random: Random, relations: dict[str, Relation], *, self_join: bool) -> View:
    """A select-project-join view over all of the relations, as SQL put through the parser."""
    return parse_view(random_sql(random, relations, self_join=self_join), relations, name="v")


def random_sql(
    random: Random,
    relations: dict[str, Relation],
    *,
    self_join: bool,
    by_key: bool = False,
    most_columns: bool = False,
) -> str:
    """The text of such a view; `by_key`: many of its joins are by the key of a relation; `most_columns`: it shows them
    as they are."""
    occurrences = [(relation, name.split(".")[1]) for name, relation in relations.items()]
    if self_join:
        again = random.choice(list(relations.values()))
        occurrences.append((again, f"{again.name.split('.')[1]}b"))
    random.shuffle(occurrences)
    shape = random.choice(("chain", "chain", "star", "tree"))
    joins: list[tuple[str, list[str], bool]] = []
    for place, (relation, alias) in enumerate(occurrences):
        table = f"{relation.name} AS {alias}"
        if place == 0:
            joins.append((table, [], False))
            continue
        other = {"chain": place - 1, "star": 0}.get(shape, random.randrange(place))
        if random.random() < 0.02:
            joins.append((table, [], True))
            continue
        if by_key and relation.key and random.random() < 0.5:
            conditions = [_key_condition(random, occurrences[other], (relation, alias))]
        else:
            conditions = [_join_condition(random, occurrences[other], (relation, alias))]
        if place >= 2 and random.random() < 0.2:
            conditions.append(_join_condition(random, random.choice(occurrences[:place]), (relation, alias)))
        joins.append((table, conditions, False))
    where = [_selection(random, occurrences) for _ in range(random.choice((0, 0, 1, 2)))]
    shown = _most_columns(random, occurrences) if most_columns else _projection(random, occurrences)
    return f"SELECT {shown} FROM {_from_clause(random, joins, where)}"


def _from_clause(random: Random, joins: list[tuple[str, list[str], bool]], where: list[str]) -> str:
    comma = random.random() < 0.4 and not any(cross for _, _, cross in joins)
    if comma:
        where = [condition for _, conditions, _ in joins for condition in conditions] + where
        text = ", ".join(table for table, _, _ in joins)
    else:
        text = joins[0][0]
        for table, conditions, cross in joins[1:]:
            text += f" CROSS JOIN {table}" if cross else f" JOIN {table} ON {' AND '.join(conditions)}"
    return text + (f" WHERE {' AND '.join(where)}" if where else "")


Occurrence = tuple[Relation, str]


def _numeric(random: Random, occurrence: Occurrence) -> str:
    relation, alias = occurrence
    choices = [c for c, kind in zip(relation.columns, relation.types, strict=True) if kind == "BIGINT"]
    return f"{alias}.{random.choice(choices)}"


def _join_condition(random: Random, left: Occurrence, right: Occurrence) -> str:
    if "t" in left[0].columns and "t" in right[0].columns and random.random() < 0.2:
        return f"{left[1]}.t = {right[1]}.t"
    luck = random.random()
    if luck < 0.85:
        return f"{left[1]}.{random.choice('ab')} = {right[1]}.{random.choice('ab')}"
    if luck < 0.93:
        return f"{_numeric(random, left)} = {_numeric(random, right)}"
    return f"{left[1]}.a {random.choice(('<', '<=', '<>'))} {right[1]}.b"


def _key_condition(random: Random, left: Occurrence, right: Occurrence) -> str:
    """The whole key of the right one, from numbers of the left one."""
    return " AND ".join(f"{left[1]}.{random.choice('ab')} = {right[1]}.{column}" for column in right[0].key or ())


def _most_columns(random: Random, occurrences: list[Occurrence]) -> str:
    shown = [
        f"{alias}.{column} AS {alias}_{column}"
        for relation, alias in occurrences
        for column in relation.columns
        if random.random() < 0.9
    ]
    return ", ".join(shown) or _projection(random, occurrences)


def _selection(random: Random, occurrences: list[Occurrence]) -> str:
    one, other = random.choice(occurrences), random.choice(occurrences)
    choices = [
        f"{one[1]}.a < 2",
        f"{one[1]}.b IS NOT NULL",
        f"({one[1]}.a = 1 OR {other[1]}.b = 2)",
        f"{one[1]}.a IN (0, 2)",
        f"{one[1]}.a + {other[1]}.b < 4",
    ]
    if "t" in one[0].columns:
        choices.append(f"{one[1]}.t <> 'x'")
    return random.choice(choices)


def _projection(random: Random, occurrences: list[Occurrence]) -> str:
    columns = []
    for number in range(1, random.randint(2, 4) + 1):
        one, other = random.choice(occurrences), random.choice(occurrences)
        luck = random.random()
        if luck < 0.75:
            text = f"{one[1]}.{random.choice(one[0].columns)}"
        elif luck < 0.85:
            text = f"{one[1]}.a + {other[1]}.b"
        elif luck < 0.95:
            text = f"COALESCE({one[1]}.a, -1)"
        else:
            text = f"CASE WHEN {one[1]}.a = {other[1]}.b THEN 1 ELSE 0 END"
        columns.append(f"{text} AS c{number}")
    return ", ".join(columns)
