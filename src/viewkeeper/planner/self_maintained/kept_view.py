"""A self-maintained view as the catalog has it.

    feeds     hidden views over one table each, of which only the changes are passed on: what the operands tell
    tables    the stored structures, hidden
    view      no rows of its own: its readers see it through the structures

All are in one group, so a refresh is a state of the group like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from viewkeeper.errors import DefinitionError
from viewkeeper.lake.log.catalog import Catalog, Definition
from viewkeeper.lake.log.columns import Columns
from viewkeeper.levels import Level
from viewkeeper.planner.self_maintained.choosing import REASONS
from viewkeeper.planner.summaries.naming import slug
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.view import View
from viewkeeper.storage.join_tree import Leaf
from viewkeeper.storage.self_maintained import storage_of
from viewkeeper.storage.storage import Storage
from viewkeeper.storage.tables import Structure
from viewkeeper.summary.statements import quoted

SELF_MAINTAINED = "self_maintained"
"""the property of a definition that makes it a self-maintained view"""


@dataclass(frozen=True)
class KeptView:
    """One self-maintained view."""

    view: View | OuterJoinView
    storage: Storage
    storage_name: str
    group: str
    level: Level
    reasons: tuple[str, ...] = ()
    """why it has this storage, if that was left to viewkeeper"""

    @property
    def name(self) -> str:
        return self.view.name

    @cached_property
    def feeds(self) -> dict[str, int]:
        """The views that tell of the changes of the operands, and the places of these in the tree."""
        return {f"_vk_feed_{slug(self.name)}_{number}": number for number in range(len(self.storage.tree.leaves))}

    @cached_property
    def tables(self) -> dict[str, Structure]:
        """The structures, by the names of their tables."""
        return {self.table_of(structure.name): structure for structure in self.storage.structures}

    def table_of(self, structure: str) -> str:
        return f"_vk_{slug(self.name)}_{slug(structure)}"

    @property
    def all_tables(self) -> tuple[str, ...]:
        """Everything that is stored for it under a name of its own."""
        return (*self.feeds, *self.tables, self.name)

    @cached_property
    def types(self) -> dict[str, str]:
        """The type of each column of a structure."""
        types: dict[str, str] = {}
        for leaf in self.storage.tree.leaves:
            relation, alias = leaf.operand.relation, leaf.operand.alias
            types |= {f"{alias}.{c}": type for c, type in zip(relation.columns, relation.types, strict=True)}
            types |= dict.fromkeys(leaf.ids, "BIGINT") if leaf.numbered else {}
        return types

    def columns_of(self, structure: Structure) -> Columns:
        return tuple((column, self.types[column]) for column in structure.columns)

    @property
    def sources(self) -> tuple[str, ...]:
        return self.view.sources

    def as_json(self) -> dict[str, Any]:
        return {
            "sql": self.view.sql,
            "storage": self.storage_name,
            "level": str(self.level),
            "tables": list(self.all_tables),
            "keys": {name: one.key and list(one.key) for name, one in self.view.relations.items()},
        }


def kept_view(definition: Definition, relations: Mapping[str, Relation]) -> KeptView:
    """The view that a definition stands for; DefinitionError if a source has lost what it needs."""
    return as_stored_now(definition, as_stored(definition, relations))


def as_stored(definition: Definition, relations: Mapping[str, Relation]) -> dict[str, Relation]:
    """Relations with the keys that the rows of a view were stored by: those stay what they are until it is reloaded.

    Where rows have numbers, for want of a key, a key that is declared later changes nothing. Where they are found by a
    key, it must still be one.
    """
    found = dict(relations)
    for name, key in definition.properties[SELF_MAINTAINED].get("keys", {}).items():
        if name not in found:
            continue
        if key is not None and found[name].key != tuple(key):
            raise DefinitionError(
                f"{definition.name} finds the rows of {name} by {', '.join(key)}, which is not its key any more",
                f"reload {definition.name}",
            )
        found[name] = replace(found[name], key=None if key is None else tuple(key))
    return found


def same_ids(definition: Definition, kept: KeptView) -> bool:
    """Whether the rows of a view would get the ids that they are stored with."""
    keys = definition.properties[SELF_MAINTAINED].get("keys")
    return keys is None or keys == kept.as_json()["keys"]


def as_stored_now(definition: Definition, relations: Mapping[str, Relation]) -> KeptView:
    """The view as it would be stored now."""
    told = definition.properties[SELF_MAINTAINED]
    view = parse_definition(told["sql"], relations)
    assert isinstance(view, View | OuterJoinView)
    return KeptView(
        view,
        storage_of(view, told["storage"]),
        told["storage"],
        definition.group,
        Level[told["level"].upper()],
        tuple(definition.properties.get(REASONS, ())),
    )


def self_maintained(catalog: Catalog) -> dict[str, Definition]:
    """The definitions of all self-maintained views."""
    return {name: view for name, view in catalog.items() if SELF_MAINTAINED in view.properties}


def feed_of(leaf: Leaf, name: str, relations: Mapping[str, Relation]) -> View:
    """The view that tells of the changes of an operand: those of its rows and columns that are needed."""
    alias, table = leaf.operand.alias, ".".join(map(quoted, leaf.operand.relation.name.split(".")))
    columns = ", ".join(f"{quoted(alias)}.{quoted(column.partition('.')[2])}" for column in leaf.given)
    sql = f"SELECT {columns} FROM {table} AS {quoted(alias)}"
    if leaf.own:
        sql += f" WHERE {' AND '.join(f'({spark_sql(condition.node)})' for condition in leaf.own)}"
    return parse_view(sql, relations, name=name)
