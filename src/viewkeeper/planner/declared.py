"""What is declared with a source and its database does not say: hierarchies of dimensions, foreign keys.

    hierarchies     {"stores": ["storeID", "city", "region"]}     every store is in one city, every city in one region
                    {"days": [["day", "month", "year"], ["day", "week"]]}    a partial order: several chains
    foreign keys    ("orders.cust", "crm.people.id")              a column of the source, and one of any source: relied
                                                                  upon, not enforced

They must name tables and columns of the source. What a foreign key leads to may belong to a source that is added later.
"""

from collections.abc import Iterable, Mapping, Sequence

from viewkeeper.errors import DefinitionError, UnknownName
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.hierarchies import Chains, Hierarchy


def check_declared(
    source: str,
    relations: Mapping[str, Relation],
    foreign_keys: Sequence[tuple[str, str]],
    hierarchies: Mapping[str, Chains],
) -> None:
    """UnknownName for a table or column that the source has not, DefinitionError for what is no hierarchy."""
    for table, chains in hierarchies.items():
        relation = _relation(source, relations, table, f"the hierarchy of {table}")
        for levels in chains:
            _check_columns(relation, levels, f"the hierarchy of {table}")
            if len(set(levels)) < max(len(levels), 2):
                raise DefinitionError(
                    f"the hierarchy of {table} is {', '.join(levels) or 'empty'}",
                    "name two columns or more, each once, the finest first, such as storeID, city, region",
                )
        if chains:
            Hierarchy.of(table, chains)  # refuses a cycle
    for child, parent in foreign_keys:
        table, _, column = child.rpartition(".")
        if not table or parent.count(".") < 2:
            raise DefinitionError(
                f"{child} → {parent} is no foreign key",
                "name a column of the source and one with its source: ('orders.cust', 'crm.people.id')",
            )
        relation = _relation(source, relations, table, f"the foreign key {child}")
        _check_columns(relation, [column], f"the foreign key {child}")


def as_the_source_spells(
    source: str,
    relations: Mapping[str, Relation],
    foreign_keys: Sequence[tuple[str, str]],
    chains: Mapping[str, Chains],
) -> tuple[tuple[tuple[str, str], ...], dict[str, Chains]]:
    """What is declared with the names of the source's own tables and columns; what it does not have stays as it is."""
    tables = {name.casefold().removeprefix(f"{source}."): name for name in relations}

    def table_of(name: str) -> str:
        found = tables.get(name.casefold().removeprefix(f"{source}."))
        return name if found is None else found.removeprefix(f"{source}.")

    def column_of(table: str, name: str) -> str:
        relation = relations.get(f"{source}.{table}")
        known = {} if relation is None else {column.casefold(): column for column in relation.columns}
        return known.get(name.casefold(), name)

    def key(child: str) -> str:
        table, dot, column = child.rpartition(".")
        return f"{table_of(table)}{dot}{column_of(table_of(table), column)}"

    spelled: dict[str, Chains] = {}
    for name, several in chains.items():
        table = table_of(name)
        own = (tuple(column_of(table, level) for level in levels) for levels in several)
        spelled[table] = tuple(dict.fromkeys((*spelled.get(table, ()), *own)))
    return tuple(dict.fromkeys((key(child), parent) for child, parent in foreign_keys)), spelled


def hierarchies_after(before: Mapping[str, Chains], declared: Mapping[str, Chains]) -> dict[str, Chains]:
    """What is declared now beside what was; an empty declaration withdraws all chains of a table."""
    found = dict(before)
    for table, chains in declared.items():
        found[table] = tuple(dict.fromkeys((*before.get(table, ()), *chains))) if chains else ()
    return {table: chains for table, chains in found.items() if chains}


def foreign_keys_after(
    before: Iterable[tuple[str, str]], declared: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """What is declared now beside what was; a column that leads to nothing withdraws its foreign keys."""
    declared = list(declared)
    withdrawn = {child for child, parent in declared if not parent}
    stays = [pair for pair in before if pair[0] not in withdrawn]
    return tuple(dict.fromkeys((*stays, *(pair for pair in declared if pair[1]))))


def _relation(source: str, relations: Mapping[str, Relation], table: str, what: str) -> Relation:
    full = f"{source}.{table.removeprefix(f'{source}.')}"
    if full not in relations:
        tables = sorted(name.removeprefix(f"{source}.") for name in relations)
        raise UnknownName(
            f"{what}: source {source} has no table {table}, or it was not added",
            f"the tables are: {', '.join(tables) or 'none'}",
        )
    return relations[full]


def _check_columns(relation: Relation, columns: Sequence[str], what: str) -> None:
    for column in columns:
        if column not in relation.columns:
            raise UnknownName(
                f"{what}: {relation.name} has no column {column}", f"its columns are: {', '.join(relation.columns)}"
            )
