"""What queries over tables of sources can be answered from, at one commit.

Tables of a lattice, the dimensions and the fact under them are read at one state: that of the lattice. Of a lattice
that waits for its refresh, or is halted, the dimensions are read as they were when it was refreshed last.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from viewkeeper.errors import StateGone, ViewkeeperError
from viewkeeper.lake.log.catalog import Catalog, Definition
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.source_files import SourceDefinition, SourceFiles
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.views.stored_views import with_hidden
from viewkeeper.maintenance.contents import SMALL, read_rows
from viewkeeper.planner.known_relations import relations_of
from viewkeeper.planner.summaries.hierarchies import DeclaredHierarchies
from viewkeeper.planner.summaries.lattice import Lattice, lattices_of
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.answering import Pairs, StoredTables, Way
from viewkeeper.summary.node import Node
from viewkeeper.summary.plan import changes_of
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Ancestors:
    """The stored tables of one lattice, and the state of the core that they show."""

    lattice: Lattice
    stored: StoredTables
    core_state: int | None
    """None: its last"""
    current: bool
    """whether all changes that its core has seen are in it"""

    def state_of(self, table: str) -> int | None:
        """The state at which a table is read; None: its last."""
        return None if table in self.lattice.tables else self.core_state


class KnownTables:
    """The sources, the lattices and the relations of a warehouse, at the commit of a snapshot."""

    def __init__(self, snapshot: HeldCommit) -> None:
        self.snapshot, self._files = snapshot, snapshot.files

    @cached_property
    def sources(self) -> dict[str, SourceDefinition]:
        return SourceFiles(self._files.store).all()

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """What a query may be over."""
        return _known(self._files, self.snapshot.record.catalog, _Sources(self.sources))[0]

    @cached_property
    def ancestors(self) -> dict[str, Ancestors]:
        """Those of each lattice."""
        lattices = _known(self._files, self.snapshot.record.catalog, _Sources(self.sources))[1]
        return {lattice.name: self._ancestors(lattice) for lattice in lattices}

    def _ancestors(self, lattice: Lattice) -> Ancestors:
        record = self.snapshot.record
        current = self._is_current(lattice, record)
        state = None if current else self._core_state(lattice, record)
        bases = list(self._bases(lattice, record, state)) if current or state is not None else []
        copies = {relation: view for relation, view in lattice.facts.copies.items() if view in dict(bases)}
        nodes = [*(table.node for table in lattice.tables.values()), *(node for _, node in bases)]
        stored = StoredTables(
            lattice.name,
            nodes,
            {node.name: record.tables[node.name].rows for node in nodes},
            copies,
            lattice.determined,
        )
        return Ancestors(lattice, stored, state, current)

    @cached_property
    def _halted(self) -> frozenset[str]:
        return frozenset(Halts(self._files.store).all())

    def _is_current(self, lattice: Lattice, record: Record) -> bool:
        waiting = [lattice.log(view) for view in lattice.inputs] + [lattice.pending(node) for node in lattice.nodes]
        return not any(name in self._halted for name in (*lattice.visible, *lattice.inputs)) and not any(
            name in record.tables and record.tables[name].rows for name in waiting
        )

    def _core_state(self, lattice: Lattice, record: Record) -> int | None:
        """The state of the core when the lattice got its last state; None if that is not known any more."""
        last = record.groups[lattice.name].last
        try:
            then = self._files.log.find_state(lattice.name, last, since=0, newest=record.commit)
        except StateGone:
            return None
        made = then.groups[lattice.name]
        return then.groups[lattice.facts.core].last if made.first <= last <= made.last else None

    def _bases(self, lattice: Lattice, record: Record, state: int | None) -> Iterator[tuple[str, Node]]:
        """The relations that are stored themselves, as nodes."""
        for view, relation in lattice.input_relations.items():
            if view == lattice.facts.feed and not lattice.facts.readable:
                continue
            if view in record.tables and (state is None or record.tables[view].oldest <= state):
                yield view, replace(changes_of(relation, WEIGHT), name=view, hidden=True)

    def frame(self, way: Way, table: str) -> "DataFrame":
        """The rows of a table that a way reads, with those of its columns that readers do not see."""
        ancestors = self.ancestors[way.stored.lattice]
        stored = with_hidden(self.snapshot, table, ancestors.state_of(table))
        return stored.bag() if table in ancestors.lattice.tables else stored.weights()

    def holds(self, way: Way, pairs: Pairs) -> bool:
        """Whether each row that the pairs are joined to has one partner."""
        by, all_columns = [column for column, _ in pairs.by], [column for column, _ in (*pairs.by, *pairs.added)]
        record, state = self.snapshot.record, self.ancestors[way.stored.lattice].core_state
        if state is None and record.tables[pairs.copy].rows <= SMALL:
            rows = read_rows(self._files, self.snapshot.catalog[pairs.copy], record)
            distinct = rows.group_by(all_columns, use_threads=False).aggregate([])
            return bool(distinct.group_by(by, use_threads=False).aggregate([]).num_rows == distinct.num_rows)
        found = self.frame(way, pairs.copy).select(*map(quoted, all_columns)).distinct()
        return bool(found.groupBy(*map(quoted, by)).count().filter("count > 1").isEmpty())


class _Sources:
    """Definitions of sources as a key: equal if what they say is."""

    def __init__(self, definitions: dict[str, SourceDefinition]) -> None:
        self.definitions = definitions
        self._told = repr(definitions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sources) and other._told == self._told

    def __hash__(self) -> int:
        return hash(self._told)


@lru_cache(maxsize=4)
def _known(files: Files, catalog_commit: int, sources: _Sources) -> tuple[dict[str, Relation], list[Lattice]]:
    """The relations and the lattices, as a catalog and the sources have them: they change seldom."""
    catalog = files.catalogs.read(catalog_commit)
    of_sources = {
        name: one for definition in sources.definitions.values() for name, one in definition.relations.items()
    }
    relations = relations_of(catalog, of_sources)
    determined = DeclaredHierarchies(sources.definitions, catalog).determined
    lattices: list[Lattice] = []
    for group in _groups(catalog):
        try:
            lattices += lattices_of(group, relations, determined, stored=catalog).values()
        except ViewkeeperError:
            continue  # a source has lost a column: the summaries over it are halted, and the others answer
    return relations, lattices


def _groups(catalog: Catalog) -> list[Catalog]:
    """The summaries of each lattice."""
    groups: dict[str, dict[str, Definition]] = {}
    for name, view in catalog.items():
        if SUMMARY in view.properties:
            groups.setdefault(view.group, {})[name] = view
    return list(groups.values())
