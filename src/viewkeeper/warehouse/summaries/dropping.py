"""Dropping a summary, with the hidden tables that no other one needs; the last of a lattice takes everything along."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from viewkeeper.errors import ProtocolError
from viewkeeper.summary.node import Node
from viewkeeper.summary.plan import Lineage, changes_of
from viewkeeper.warehouse.columns import RESERVED, WEIGHT
from viewkeeper.warehouse.commit import Commit
from viewkeeper.warehouse.summaries.lattice import Lattice

if TYPE_CHECKING:
    from viewkeeper.warehouse.summaries.keeping import Summaries


def drop_tables(summaries: "Summaries", commit: Commit, lattice: Lattice, names: Iterable[str]) -> list[str]:
    """Drop summaries in a commit; the names of all tables that go."""
    names = list(names)
    left = [name for name in lattice.visible if name not in names]
    gone = names + (_unneeded(lattice, left) if left else [n for n in lattice.tables if n not in lattice.visible])
    waiting = [lattice.pending(name) for name in gone]
    if not left:
        waiting += [lattice.pending(name) for name in lattice.virtual]
        waiting += map(lattice.log, lattice.inputs)
        gone += [view for view in lattice.inputs if view.startswith(RESERVED)]
    gone += [name for name in waiting if name in summaries.catalog]
    for name in gone:
        commit.drop(name)
    return gone


def _unneeded(lattice: Lattice, visible: list[str]) -> list[str]:
    """The hidden tables that the ones that stay can do without."""
    kept = [lattice.nodes[name] for name in visible]
    behind = {extreme.node for node in kept for extreme in node.extremes}
    hidden = [table.node for table in lattice.tables.values() if table.node.hidden]
    kept += [node for node in hidden if node.name in behind]
    others = [node for node in hidden if node.name not in behind]
    for node in list(others):
        rest = [one for one in others if one is not node]
        if _all_derived(lattice, kept + rest):
            others = rest
    return [node.name for node in hidden if node not in others and node.name not in behind]


def _all_derived(lattice: Lattice, nodes: list[Node]) -> bool:
    try:
        Lineage(nodes, changes_of(lattice.fact, WEIGHT), core_readable=lattice.facts.readable)
    except ProtocolError:
        return False
    return True
