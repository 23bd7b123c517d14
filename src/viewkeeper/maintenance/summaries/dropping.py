"""Dropping summaries, with the hidden tables that no other one needs; the last of a lattice takes everything along.

goes     the tables, hidden ones that served them alone, the copies of dimensions that nobody joins any more
stays    under a hidden name: a dropped table in which others look up extremes, or that is their root
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.errors import ProtocolError
from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import Catalog
from viewkeeper.lake.log.columns import RESERVED, WEIGHT
from viewkeeper.maintenance.contents import SMALL
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.summary.hidden_nodes import HIDDEN
from viewkeeper.summary.node import Node
from viewkeeper.summary.plan import Lineage, changes_of
from viewkeeper.summary.statements import quoted, stored_types


@dataclass(frozen=True)
class Dropping:
    """What becomes of a lattice without some of its summaries."""

    lattice: Lattice
    names: tuple[str, ...]
    needed: tuple[str, ...]
    """hidden tables, and those of the dropped ones, that the summaries that are left cannot do without"""

    @property
    def rested_on(self) -> list[str]:
        """Those of the dropped ones that others rest on."""
        return [name for name in self.names if name in self.needed]

    @property
    def left(self) -> Lattice:
        """What is left, a table that others rest on still under its own name."""
        visible = [name for name in self.lattice.visible if name not in self.names]
        tables = {n: table for n, table in self.lattice.tables.items() if n in visible or n in self.needed}
        behind = {extreme.node for name in visible for extreme in self.lattice.nodes[name].extremes}
        virtual = {name: node for name, node in self.lattice.virtual.items() if name in behind}
        return replace(self.lattice, tables=tables, virtual=virtual)

    def drop(self, summaries: Summaries, commit: Commit) -> list[str]:
        """Drop everything that goes; the names of all tables that do."""
        lattice, left = self.lattice, self.left
        kept = {name: _kept_name(summaries.catalog, name) for name in self.rested_on}
        for name, hidden in kept.items():
            self._keep(summaries, commit, name, hidden)
        self._look_up_elsewhere(commit, kept)
        inputs = left.inputs if left.tables else ()
        unread = [view for view in lattice.inputs if view not in inputs]
        nodes = [name for name in lattice.nodes if name not in left.nodes or name in self.names]
        gone = [name for name in nodes if name in lattice.tables]
        gone += [view for view in unread if view.startswith(RESERVED)]
        waiting = [*map(lattice.pending, nodes), *map(lattice.log, unread)]
        gone += [name for name in waiting if name in summaries.catalog]
        for name in gone:
            commit.drop(name)
        return gone

    def _keep(self, summaries: Summaries, commit: Commit, name: str, hidden: str) -> None:
        """A table again, under a hidden name and without its extremes."""
        lattice, record, table = self.lattice, summaries.writer.last, self.lattice.tables[name]
        told = table.definition.properties[SUMMARY]
        node = table.node
        names = stored_types(replace(node, extremes=()))
        columns = [column for column in table.definition.columns if column[0] in names]
        commit.create(
            hidden,
            [column for column in columns if not column[0].startswith(RESERVED)],
            hidden={column: type for column, type in columns if column.startswith(RESERVED)},
            rows=_rows(summaries, name, [column for column, _ in columns]),
            group=lattice.name,
            vector=record.groups[lattice.name].vector,
            distinct=True,
            retention=table.definition.retention,
            properties={
                SUMMARY: {**_without(told, "extremes"), "part": {"extreme": None, "root_of": [], "whole": True}}
            },
        )
        if lattice.deferred:
            types = dict(columns)
            linear = tuple((column, types[column]) for column in node.columns)
            summaries.waiting.create_deltas(commit, lattice.name, {hidden: linear})

    def _look_up_elsewhere(self, commit: Commit, kept: dict[str, str]) -> None:
        """Extremes that were looked up in a table that is hidden now."""
        for name, table in self.lattice.visible.items():
            if name in self.names or not any(extreme.node in kept for extreme in table.node.extremes):
                continue
            properties = table.definition.properties
            extremes = {c: kept.get(node, node) for c, node in properties[SUMMARY]["extremes"].items()}
            commit.redefine(name, {**properties, SUMMARY: {**properties[SUMMARY], "extremes": extremes}})


def drop_summary(summaries: Summaries, name: str) -> None:
    """Drop a summary or a family, and the hidden tables that nothing else needs."""
    lattice, folders = summaries.lattice_of(name), []
    plan = dropping(lattice, summaries.members(name))
    if plan.rested_on and not summaries.is_halted(lattice):
        summaries.refresh(lattice)
    with summaries.context.new_commit() as commit:
        for table in plan.drop(summaries, commit):
            folders.append(summaries.catalog[table].folder)
    for folder in folders:
        summaries.context.halts.remove(folder)


def dropping(lattice: Lattice, names: Iterable[str]) -> Dropping:
    """Find out what goes with some summaries."""
    names = tuple(names)
    visible = [table.node for name, table in lattice.visible.items() if name not in names]
    if not visible:
        return Dropping(lattice, names, ())
    behind = {extreme.node for node in visible for extreme in node.extremes}
    # What users have dropped goes rather than what was hidden all along.
    others = [lattice.nodes[name] for name in names]
    others += [table.node for table in lattice.tables.values() if table.node.hidden]
    needed = [node for node in others if node.name in behind]
    spare = [node for node in others if node.name not in behind]
    for node in list(spare):
        rest = [one for one in spare if one is not node]
        if _all_derived(lattice, [*visible, *needed, *rest]):
            spare = rest
    return Dropping(lattice, names, tuple(node.name for node in (*needed, *spare)))


def _all_derived(lattice: Lattice, nodes: list[Node]) -> bool:
    try:
        Lineage(nodes, changes_of(lattice.fact, WEIGHT), core_readable=lattice.facts.readable)
    except ProtocolError:
        return False
    return True


def _kept_name(catalog: Catalog, name: str) -> str:
    """A hidden name for a table that was seen."""
    plain = f"{HIDDEN}{name}_kept"
    number, free = 1, plain
    while free in catalog:
        number += 1
        free = f"{plain}{number}"
    return free


def _rows(summaries: Summaries, name: str, columns: list[str]) -> Any:
    """Some columns of a table: on the driver if it is small."""
    record = summaries.writer.last
    if record.tables[name].rows <= SMALL:
        return summaries.contents.table(name, record).select(columns)
    return summaries.contents.frame(name, record).select(*[quoted(column) for column in columns])


def _without(told: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != key}
