"""All lattices at the last commit, for those who only look: nothing is written, no source asked, no Spark started."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from viewkeeper.errors import StateGone, ViewkeeperError
from viewkeeper.lake.log.catalog import Catalog, find
from viewkeeper.lake.log.halts import Halt, Halts
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.planner.known_relations import relations_of
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.self_maintained.change_rates import recent, transactions_per_hour
from viewkeeper.planner.summaries.foreign_keys import DeclaredForeignKeys
from viewkeeper.planner.summaries.hierarchies import DeclaredHierarchies
from viewkeeper.planner.summaries.lattice import Lattice, lattices_of
from viewkeeper.planner.summaries.learned import Learned
from viewkeeper.planner.summaries.naming import METRICS, SUMMARY
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.plan import Expected, Plan


@dataclass(frozen=True)
class Told:
    """What a commit said about what it did to a lattice."""

    commit: int
    time: str
    figures: Mapping[str, Any]


class Overview:
    """The warehouse at its last commit, as the planner of summaries sees it."""

    def __init__(
        self, snapshot: HeldCommit, sources: KnownSources, relations: Mapping[str, Relation] | None = None
    ) -> None:
        """`relations` of sources are taken as they are given here, and not as they are registered."""
        self.sources = sources if relations is None else sources.supposing(relations)
        self.record: Record = snapshot.record
        self.catalog: Catalog = snapshot.catalog
        self._files = snapshot.files
        self._lattices: dict[str, Lattice] = {}

    @property
    def spark(self) -> Callable[[], Any]:
        """Gives the session; it is not started before it is needed."""
        return self._files.spark

    @cached_property
    def relations(self) -> dict[str, Relation]:
        return relations_of(self.catalog, self.sources.relations())

    @cached_property
    def hierarchies(self) -> DeclaredHierarchies:
        return DeclaredHierarchies(self.sources.definitions(), self.catalog)

    @cached_property
    def foreign_keys(self) -> DeclaredForeignKeys:
        return DeclaredForeignKeys(self.sources.definitions())

    @cached_property
    def halts(self) -> dict[str, Halt]:
        return Halts(self._files.store).all()

    @property
    def lattices(self) -> dict[str, Lattice]:
        """All of them; one whose sources have lost what it needs is halted, and left out."""
        found = {}
        for group in sorted({view.group for view in self.catalog.values() if SUMMARY in view.properties}):
            with suppress(ViewkeeperError):
                found[group] = self.lattice(group)
        return found

    def lattice(self, group: str) -> Lattice:
        """The lattice of a group; a DefinitionError if its sources have lost what it needs."""
        if group not in self._lattices:
            tables = {name: view for name, view in self.catalog.items() if view.group == group}
            self._lattices |= lattices_of(
                tables, self.relations, self.hierarchies.determined, self.foreign_keys, stored=self.catalog
            )
        return self._lattices[group]

    def lattice_of(self, view: str) -> Lattice | None:
        """The lattice that a stored table belongs to; None if it is no summary; UnknownView."""
        definition = find(self.catalog, view)
        return self.lattice(definition.group) if SUMMARY in definition.properties else None

    def rows(self, table: str) -> int | None:
        """How many rows are stored; None if there is no such table."""
        return self.record.tables[table].rows if table in self.record.tables else None

    def bytes(self, table: str) -> int | None:
        """What the files of a table take; None if there is no such table."""
        if table not in self.record.tables:
            return None
        return sum(file.size for file in self._files.tables.files(self.catalog[table], self.record.tables[table]))

    @cached_property
    def newest(self) -> list[Record]:
        """The newest commits, oldest first."""
        return recent(self._files.log)

    @cached_property
    def rates(self) -> dict[str, float]:
        """Transactions per hour, by source, as far as the commit log knows them."""
        return transactions_per_hour(self.newest)

    def learned(self, lattice: Lattice) -> Learned:
        """What past refreshes taught; nothing, of a lattice that is not stored yet."""
        group = self.record.groups.get(lattice.name)
        return Learned.of(group.resume) if group is not None else Learned()

    def expected(self, lattice: Lattice) -> Expected:
        """How many rows the next summary-deltas should have."""
        return self.learned(lattice).expected({name: table.rows for name, table in self.record.tables.items()})

    def plan(self, lattice: Lattice) -> Plan:
        """What the next propagation will do."""
        return lattice.lineage.plan(self.expected(lattice))

    def last_refresh(self, lattice: Lattice) -> Told | None:
        """The last commit that refreshed the tables, if it is retained."""
        return self._last(lattice.name, lattice.name)

    def last_propagation(self, lattice: Lattice) -> Told | None:
        """The last commit that only made summary-deltas, to wait for a refresh."""
        return self._last(lattice.waiting_group, lattice.name)

    def _last(self, group: str, lattice: str) -> Told | None:
        """What the newest state of a group with figures says. Of states that came with a new table there are none."""
        log, there, newest = self._files.log, self.record.groups.get(group), self.record.commit
        while there is not None:
            try:
                record = log.find_state(group, there.last, since=0, newest=newest)
                told = record.metrics.get(METRICS, {}).get(lattice)
                if told is not None:
                    return Told(record.commit, record.time, told)
                newest = record.commit - 1
                there = log.retained(newest).groups.get(group) if newest in log.numbers() else None
            except StateGone:
                return None
        return None
