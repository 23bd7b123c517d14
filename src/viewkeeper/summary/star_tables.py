"""The tables that a fact refers to, and what a column is called that somebody names.

    pos.storeID → stores            a declared foreign key, or a column called like the whole key of the other table
    stores.cityID → cities          and so on from there

A name is a column of the fact, `table.column`, or a column that only one of these tables has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.errors import DefinitionError, UnknownName
from viewkeeper.sql.names import closest
from viewkeeper.sql.relation import Relation

ForeignKey = tuple[str, str]
"""full names of a column and of the column of a key that it refers to: retail.pos.store, retail.stores.id"""


@dataclass(frozen=True)
class StarTable:
    """The fact, or a table that it refers to, by way of `before`."""

    alias: str
    relation: Relation
    before: str | None = None
    """the alias of the table that refers to it"""
    on: tuple[tuple[str, str], ...] = ()
    """columns of that table, and the columns of the key that they are equal to"""
    twice: bool = False
    """whether it can be reached in two ways, so that nobody knows which is meant"""


@dataclass(frozen=True)
class StarColumn:
    """A column, by the alias of its table."""

    table: str
    column: str


@dataclass(frozen=True)
class StarTables:
    """The fact first, then the tables that it refers to."""

    tables: Mapping[str, StarTable]

    @property
    def fact(self) -> StarTable:
        return next(iter(self.tables.values()))

    def needed(self, aliases: Iterable[str]) -> frozenset[str]:
        """Those tables, without the fact, with all that lie on the way to them."""
        found: set[str] = set()
        for alias in aliases:
            table: StarTable | None = self.tables[alias]
            while table is not None and table.before is not None:
                found.add(table.alias)
                table = self.tables[table.before]
        return frozenset(found)

    def find(self, name: str) -> StarColumn:
        """The column that a name means; UnknownName if there is none or more than one."""
        qualifier, _, column = name.strip().strip("`").replace("`.`", ".").rpartition(".")
        owners = [table for table in self.tables.values() if _is_called(table, qualifier)]
        if qualifier and not owners:
            raise UnknownName(
                f"{self.fact.relation.name} does not refer to a table {qualifier}, which {name} is to be a column of",
                closest(qualifier, [one.relation.name for one in self.tables.values()])
                + "; or declare the foreign key with the source",
            )
        found = [(table, own) for table in owners if (own := _column(table.relation, column)) is not None]
        if not qualifier and found and found[0][0] is self.fact:
            found = found[:1]
        if not found:
            raise self._unknown(name, owners, bool(qualifier))
        if len(found) > 1:
            short = [f"{table.relation.name.rpartition('.')[2]}.{own}" for table, own in found]
            full = [f"{table.relation.name}.{own}" for table, own in found]
            ways = " or ".join(short if len({*map(str.lower, short)}) == len(short) else full)
            raise UnknownName(f"several tables have a column {column}", f"write {ways}", code="ambiguous-name")
        table, own = found[0]
        if table.twice:
            raise DefinitionError(
                f"{self.fact.relation.name} refers to {table.relation.name} in two ways, and {name} may be in either",
                "create views that join it as you mean",
            )
        return StarColumn(table.alias, own)

    def _unknown(self, name: str, owners: Sequence[StarTable], qualified: bool) -> UnknownName:
        known = [column for table in owners for column in table.relation.columns]
        others = [table.relation.name for table in owners[1:]]
        if qualified:
            column = name.rpartition(".")[2]
            return UnknownName(f"{owners[0].relation.name} has no column {column}", closest(column, known))
        where = f", nor has a table that it refers to ({', '.join(others)})" if others else ""
        return UnknownName(f"{self.fact.relation.name} has no column {name}{where}", closest(name, known))


def star_tables(fact: str, relations: Mapping[str, Relation], foreign_keys: Sequence[ForeignKey] = ()) -> StarTables:
    """The fact and everything that it refers to; UnknownName if there is no such table."""
    spelled = {name.lower(): name for name in relations}
    if fact.lower() not in spelled:
        raise UnknownName(f"no source has a table {fact}", closest(fact, relations))
    first = relations[spelled[fact.lower()]]
    tables: dict[str, StarTable] = {}

    def add(relation: Relation, before: str | None, ways: Sequence[tuple[tuple[str, str], ...]]) -> str:
        alias = relation.name.rpartition(".")[2].lower()
        while alias in tables:
            alias += "_"
        tables[alias] = StarTable(alias, relation, before, ways[0] if ways else (), len(ways) > 1)
        return alias

    waiting = [add(first, None, ())]
    reached = {first.name}
    while waiting:
        here = tables[waiting.pop(0)]
        for relation in relations.values():
            if relation.name not in reached and (ways := _ways(here.relation, relation, foreign_keys)):
                reached.add(relation.name)
                waiting.append(add(relation, here.alias, ways))
    return StarTables(tables)


def _ways(child: Relation, parent: Relation, foreign_keys: Sequence[ForeignKey]) -> list[tuple[tuple[str, str], ...]]:
    """How rows of a table find their row in another: declared foreign keys, else columns of the same names."""
    if parent.key is None:
        return []
    declared: dict[str, list[str]] = {key: [] for key in parent.key}
    for source, target in foreign_keys:
        table, _, column = source.rpartition(".")
        target_table, _, key = target.rpartition(".")
        own, theirs = _column(child, column), _column(parent, key)
        if table.lower() == child.name.lower() and target_table.lower() == parent.name.lower() and theirs in declared:
            assert own is not None
            declared[theirs].append(own)
    if all(declared.values()):
        number = max(len(columns) for columns in declared.values())
        return [
            tuple((columns[min(n, len(columns) - 1)], key) for key, columns in declared.items()) for n in range(number)
        ]
    named = [(_column(child, key), key) for key in parent.key]
    pairs = tuple((own, key) for own, key in named if own is not None)
    # A table's own key is called `id` in many: that they are called the same says nothing then.
    if len(pairs) < len(parent.key) or {own for own, _ in pairs} == set(child.key or ()):
        return []
    return [pairs]


def _is_called(table: StarTable, qualifier: str) -> bool:
    """Whether a qualifier means a table: its name, or the end of it."""
    name = f".{table.relation.name.lower()}"
    return not qualifier or name.endswith(f".{qualifier.lower()}")


def _column(relation: Relation, name: str) -> str | None:
    """A column as the relation spells it."""
    return next((column for column in relation.columns if column.lower() == name.lower()), None)
