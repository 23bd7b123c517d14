"""Which relation and which column a name in a view's SQL stands for.

Tables are looked up in the catalog here. Columns are resolved by sqlglot; this module only prepares the tree for it, so
that a wrong name gives an error that says what exists.

Names are matched without regard to case, as Spark does. An alias becomes lower case, a column keeps the spelling that
the relation declares.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping

from sqlglot import exp

from viewkeeper.errors import DefinitionError, UnknownName
from viewkeeper.sql.relation import Catalog, Relation
from viewkeeper.sql.syntax import position
from viewkeeper.sql.view import Operand

RESERVED = "_vk"


def refuse_reserved(name: str, what: str) -> None:
    """Refuses a name with the prefix of the columns that viewkeeper adds to its tables."""
    if name.lower().startswith(RESERVED):
        raise DefinitionError(f"{what} {name} starts with {RESERVED}, which is reserved", "choose another name: AS ...")


def closest(name: str, known: Iterable[str]) -> str:
    """A hint that names what was probably meant, or else everything there is."""
    spellings = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), spellings, n=3)
    if matches:
        return f"did you mean {' or '.join(spellings[match] for match in matches)}?"
    return f"there is {', '.join(spellings.values())}" if spellings else "there is none yet: add a source first"


def bind_tables(select: exp.Select, catalog: Catalog) -> tuple[Operand, ...]:
    """The operands of FROM. In the tree every table becomes its alias, and `source.table.column` `alias.column`."""
    tables = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
    operands: list[Operand] = []
    unaliased: dict[tuple[str, ...], str] = {}
    for index, table in enumerate(tables):
        parts = tuple(part.name.lower() for part in table.parts)
        alias = table.alias_or_name.lower()
        relation = _relation(table, parts, catalog)
        if any(alias == operand.alias for operand in operands):
            raise DefinitionError(
                f"two tables are called {alias}{position(table)}", f"give it an alias: {relation.name} AS {alias}2"
            )
        if "." in alias:
            raise DefinitionError(f"the name {alias} has a dot in it", f"give it an alias: {relation.name} AS t{index}")
        refuse_reserved(alias, "the alias")
        if not table.alias:
            unaliased[parts] = alias
        operands.append(Operand(index, alias, relation))
        table.replace(exp.alias_(exp.to_table(f"r{index}"), alias, table=True, quoted=True))
    for column in select.find_all(exp.Column):
        _drop_source(column, unaliased)
    return tuple(operands)


def check_columns(select: exp.Select, operands: tuple[Operand, ...]) -> None:
    """Refuses a column that no operand has, or that a name does not single out."""
    columns = {operand.alias: {column.lower() for column in operand.relation.there} for operand in operands}
    visible = visible_columns(select, operands)
    for node in select.find_all(exp.Column):
        first, *rest = (part.name.lower() for part in node.parts)
        where = position(node)
        if rest and first in columns:
            if rest[0] != "*" and rest[0] not in columns[first]:
                [operand] = (operand for operand in operands if operand.alias == first)
                raise UnknownName(f"{first} has no column {rest[0]}{where}", closest(rest[0], operand.relation.there))
        elif visible[first] > 1:
            owners = [f"{alias}.{first}" for alias, names in columns.items() if first in names]
            raise UnknownName(
                f"the column {first} is ambiguous{where}", f"write {' or '.join(owners)}", code="ambiguous-name"
            )
        elif not visible[first] and rest:
            raise UnknownName(f"no table in FROM is called {first}{where}", closest(first, columns))
        elif not visible[first]:
            known = (column for operand in operands for column in operand.relation.there)
            raise UnknownName(f"no table in FROM has a column {first}{where}", closest(first, known))


def spelling(operands: tuple[Operand, ...]) -> Mapping[tuple[str, str], str]:
    """From an alias and a column in lower case to the column as its relation declares it."""
    return {(operand.alias, column.lower()): column for operand in operands for column in operand.relation.there}


def _relation(table: exp.Table, parts: tuple[str, ...], catalog: Catalog) -> Relation:
    name, where = ".".join(parts), position(table)
    relations = {known.lower(): relation for known, relation in catalog.items()}
    alike = sorted(known for known in catalog if known.lower() == name)
    if len(alike) > 1:
        raise DefinitionError(
            f"{' and '.join(alike)} differ in case alone, and SQL does not distinguish upper and lower case{where}",
            "rename one of them at its source, or add the source with the table that you need alone",
        )
    relation = relations.get(name)
    if relation is None:
        same_table = [known.name for key, known in relations.items() if key.rpartition(".")[2] == parts[-1]]
        hint = f"write {' or '.join(same_table)}" if same_table else closest(name, catalog)
        if len(parts) == 1:
            raise UnknownName(f"the table {name} has no source: tables are named source.table{where}", hint)
        raise UnknownName(f"no source has a table {name}{where}", hint)
    counts = Counter(column.lower() for column in relation.there)
    if twice := [column for column, count in counts.items() if count > 1]:
        raise DefinitionError(
            f"{relation.name} has two columns called {twice[0]}, and SQL does not distinguish upper and lower case",
            "rename one of them at the source",
        )
    return relation


def _drop_source(column: exp.Column, unaliased: Mapping[tuple[str, ...], str]) -> None:
    """Makes `source.table.column` `alias.column`, if the table is in FROM under its own name."""
    parts = [part.name.lower() for part in column.parts]
    for length in range(2, len(parts)):
        alias = unaliased.get(tuple(parts[:length]))
        if alias is not None and length == len(parts) - 1:
            column.replace(exp.column(column.this.copy(), table=exp.to_identifier(alias, quoted=True)))
            return


def visible_columns(select: exp.Select, operands: tuple[Operand, ...]) -> Counter[str]:
    """How many columns each bare name stands for; USING makes two of them one."""
    first, *others = operands
    visible = Counter(column.lower() for column in first.relation.there)
    for operand, join in zip(others, select.args.get("joins") or (), strict=True):
        using = [identifier.name.lower() for identifier in join.args.get("using") or ()]
        columns = {column.lower() for column in operand.relation.there}
        for name in using:
            where = position(join)
            if name not in columns:
                hint = closest(name, operand.relation.there)
                raise UnknownName(f"{operand.alias} has no column {name} for USING{where}", hint)
            if not visible[name]:
                raise UnknownName(
                    f"no table before {operand.alias} has a column {name} for USING{where}", closest(name, visible)
                )
            if visible[name] > 1:
                hint = f"write ON ... = {operand.alias}.{name}"
                raise UnknownName(f"the column {name} of USING is ambiguous{where}", hint, code="ambiguous-name")
        visible.update(columns.difference(using))
    return visible
