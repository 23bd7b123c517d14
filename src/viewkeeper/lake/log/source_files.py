"""What is known of each source: `_viewkeeper/sources/NAME.json`. Never a password."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algorithms.registry import Transactions
from viewkeeper.errors import DamagedWarehouse, DefinitionError
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.record import seal, unseal
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.messages import Position
from viewkeeper.sources.layout import Alteration
from viewkeeper.sources.registry import kind_of
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.stored_text import stored_type
from viewkeeper.summary.hierarchies import Chains, chains_of

SOURCES = f"{HOME}/sources"
WORKSPACES = f"{HOME}/workspaces"


@dataclass(frozen=True)
class SourceDefinition:
    """A source as it was added: how to reach it, and the relations that it had."""

    name: str
    url: str
    tables: tuple[str, ...] | None
    keys: Mapping[str, tuple[str, ...]]
    relations: Mapping[str, Relation]
    installed: bool
    global_transactions: bool
    foreign_keys: tuple[tuple[str, str], ...] = ()
    hierarchies: Mapping[str, Chains] = field(default_factory=dict)
    anew: Mapping[str, tuple[tuple[Position, Alteration], ...]] = field(default_factory=dict)
    """relations that were altered and registered as they are since: where in the stream that was, and what it was"""
    transactions: Transactions = Transactions.LOCAL
    """what was declared of its transactions: that each is a single update, or nothing"""

    @property
    def kind(self) -> str:
        """sqlite, postgres, mysql, files or delta."""
        return kind_of(self.url)


class SourceFiles:
    """The definitions of one warehouse."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._read_before: dict[str, tuple[bytes, SourceDefinition]] = {}
        """what each file held when it was last read: it is looked at often, and changes almost never"""

    def all(self) -> dict[str, SourceDefinition]:
        names = sorted(name for name in self._store.names(SOURCES) if name.endswith(".json"))
        return {definition.name: definition for definition in map(self._read, names)}

    def write(self, definition: SourceDefinition) -> None:
        self._store.write(_file(definition.name), seal(_told(definition)))

    def remove(self, name: str) -> None:
        self._store.delete(_file(name))

    def _read(self, file: str) -> SourceDefinition:
        content = self._store.read(f"{SOURCES}/{file}")
        before = self._read_before.get(file)
        if before is None or before[0] != content:
            self._read_before[file] = before = content, self._decoded(file, content)
        return before[1]

    def _decoded(self, file: str, content: bytes) -> SourceDefinition:
        try:
            told = unseal(content)
            return SourceDefinition(
                told["name"],
                told["url"],
                None if told["tables"] is None else tuple(told["tables"]),
                {table: tuple(key) for table, key in told["keys"].items()},
                {name: _relation(name, one) for name, one in told["relations"].items()},
                told["installed"],
                told["global_transactions"],
                tuple((child, parent) for child, parent in told["foreign_keys"]),
                {table: chains_of(declared) for table, declared in told["hierarchies"].items()},
                {name: tuple(map(_altered, several)) for name, several in _each(told.get("anew", {})).items()},
                Transactions(told.get("transactions", Transactions.LOCAL)),
            )
        except (ValueError, KeyError, TypeError, DefinitionError) as error:
            raise DamagedWarehouse(
                f"the source {self._store.path(SOURCES) / file} is damaged: {error}",
                "delete that file and add the source again",
            ) from error


def _file(name: str) -> str:
    return f"{SOURCES}/{name}.json"


def _told(definition: SourceDefinition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "url": definition.url,
        "tables": definition.tables,
        "keys": {table: list(key) for table, key in definition.keys.items()},
        "relations": {
            name: {
                "source": relation.source,
                "columns": relation.columns,
                "types": relation.types,
                "key": relation.key,
                **({"gone": relation.gone} if relation.gone else {}),
            }
            for name, relation in definition.relations.items()
        },
        "installed": definition.installed,
        "global_transactions": definition.global_transactions,
        "foreign_keys": definition.foreign_keys,
        "hierarchies": {table: list(map(list, chains)) for table, chains in definition.hierarchies.items()},
        "anew": {
            name: [
                [until, one.reason, None if one.columns is None else sorted(one.columns), one.recomputable]
                for until, one in several
            ]
            for name, several in definition.anew.items()
        },
        "transactions": str(definition.transactions),
    }


def _relation(name: str, told: Mapping[str, Any]) -> Relation:
    key = told["key"]
    return Relation(
        name,
        told["source"],
        tuple(told["columns"]),
        tuple(map(stored_type, told["types"])),
        None if key is None else tuple(key),
        tuple(told.get("gone", ())),
    )


def _each(anew: Mapping[str, Any]) -> dict[str, list[Any]]:
    """An earlier viewkeeper noted one alteration, of the whole relation."""
    return {name: [told] if told and isinstance(told[0], str) else told for name, told in anew.items()}


def _altered(told: Sequence[Any]) -> tuple[Position, Alteration]:
    until, reason = told[:2]
    columns, recomputable = told[2:] or (None, False)
    return until, Alteration(reason, None if columns is None else frozenset(columns), recomputable)
