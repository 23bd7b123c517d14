"""The lattices of a warehouse, to be looked at: as data, as text, as SVG.

Nodes are the tables, seen and hidden, below the changes of their fact. Edges are the ways of `ways.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.explaining.explained_table import LatticeExplained, group_by, why_kept
from viewkeeper.lake.log.catalog import families
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.overview import Overview, Told
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.summaries.ways import Way
from viewkeeper.summary.cube_lattice import Edge
from viewkeeper.summary.cube_lattice import Lattice as Order
from viewkeeper.summary.lattice_drawing import as_text, draw
from viewkeeper.summary.plan import CHANGES


@dataclass(frozen=True)
class DrawnNode:
    """A table of the lattice."""

    name: str
    group_by: tuple[str, ...]
    rows: int | None
    """None if it is not stored: then it only has a summary-delta"""
    hidden: bool
    kept_for: str
    """of a hidden one: whom it serves"""
    last: Mapping[str, Any] | None
    """the figures of its last refresh, if there was one and it is retained"""

    @property
    def lines(self) -> tuple[str, ...]:
        """Of its box."""
        size = "not stored" if self.rows is None else f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}"
        grouped = ", ".join(self.group_by) or "one group"
        last = f"last: {_in_short(self.last)}" if self.last is not None else ""
        return tuple(filter(None, (self.name, grouped, self.kept_for, size, last)))


@dataclass(frozen=True)
class DrawnLattice:
    """One lattice."""

    name: str
    fact: str
    nodes: tuple[DrawnNode, ...]
    edges: tuple[Way, ...]
    last_refresh: Told | None
    last_propagation: Told | None

    @property
    def text(self) -> str:
        """For a terminal: a tree, each table below what it is derived from."""
        return as_text(self._order, **self._drawing)

    @property
    def svg(self) -> str:
        """A drawing that stands by itself."""
        return draw(self._order, title=f"Summaries of {self.fact}", **self._drawing)

    @property
    def _order(self) -> Order[str]:
        names = (CHANGES, *(node.name for node in self.nodes))
        return Order(names, tuple(Edge(way.above, way.below, frozenset(way.joins)) for way in self.edges))

    @property
    def _drawing(self) -> dict[str, Any]:
        changes = [f"changes of {self.fact}"]
        if self.last_refresh is not None:
            changes.append(f"last: {self.last_refresh.figures['changes']:,}")
        return {
            "labels": {CHANGES: changes, **{node.name: node.lines for node in self.nodes}},
            "edge_labels": {way.ends: way.label for way in self.edges},
            "chosen_edges": {way.ends for way in self.edges if way.chosen},
            "hidden": {node.name for node in self.nodes if node.hidden},
            "doubtful_edges": {way.ends for way in self.edges if way.relies_on},
        }


def drawn_lattices(snapshot: HeldCommit, sources: KnownSources, view: str | None = None) -> list[DrawnLattice]:
    """Every lattice, or that of a view; none for a view that is no summary; UnknownView."""
    overview = Overview(snapshot, sources)
    if view is None:
        return [_drawn(overview, lattice) for _, lattice in overview.lattices.items()]
    members = families(overview.catalog).get(view)
    lattice = overview.lattice_of(members[0].name if members else view)
    return [_drawn(overview, lattice)] if lattice is not None else []


def _drawn(overview: Overview, lattice: Lattice) -> DrawnLattice:
    explained = LatticeExplained(overview, lattice)
    last = explained.last_refresh
    tables = last.figures.get("tables", {}) if last is not None else {}
    nodes = (
        DrawnNode(
            name,
            group_by(lattice.nodes[name]),
            overview.rows(name),
            lattice.nodes[name].hidden,
            why_kept(lattice, name) if lattice.nodes[name].hidden else "",
            tables.get(name),
        )
        for name in explained.plan.considered
    )
    return DrawnLattice(
        lattice.name,
        lattice.fact.name,
        tuple(nodes),
        tuple(explained.ways),
        last,
        overview.last_propagation(lattice),
    )


def _in_short(figures: Mapping[str, Any]) -> str:
    """+3 ~1 −2: rows that came, changed and went."""
    signs = (("+", "inserted"), ("~", "updated"), ("−", "deleted"))
    return " ".join(f"{sign}{figures[what]:,}" for sign, what in signs if figures.get(what)) or "no change"
