"""How many rows relations of sources have, where the warehouse holds a copy of them: no source is queried."""

from contextlib import suppress

from viewkeeper.errors import ViewkeeperError
from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.kept_view import KeptView, kept_view, self_maintained
from viewkeeper.planner.view_properties import SQL, VIEWS
from viewkeeper.sql.parse import parse_view


def known_sizes(overview: Overview) -> dict[str, int]:
    """Rows, by relation: of views, and of what copies, dimensions and views of one whole table tell."""
    sizes = dict(_copied_whole(overview))
    for lattice in overview.lattices.values():
        held = dict(lattice.facts.copies)
        if lattice.facts.readable:
            held[lattice.fact.name] = lattice.facts.feed
        sizes |= {relation: rows for relation, view in held.items() if (rows := overview.rows(view)) is not None}
    return sizes


def _copied_whole(overview: Overview) -> list[tuple[str, int]]:
    found = []
    for name, definition in overview.catalog.items():
        if name.startswith(RESERVED):
            continue
        rows = overview.rows(name)
        if rows is not None and definition.computed is None:
            found.append((name, rows))
        if SQL not in definition.properties or rows is None:
            continue
        try:
            view = parse_view(definition.properties[SQL], overview.relations, name=name)
        except ViewkeeperError:
            # Its source has lost what it needs: it says nothing about the present.
            continue
        if len(view.operands) == 1 and not view.conditions and view.operands[0].source != VIEWS:
            found.append((view.operands[0].relation.name, rows))
    for kept in stored_joins(overview):
        for number, leaf in enumerate(kept.storage.tree.leaves):
            rows = overview.rows(kept.table_of(f"copy {number}"))
            if rows is not None and not leaf.own:
                found.append((leaf.operand.relation.name, rows))
    return found


def stored_joins(overview: Overview) -> list[KeptView]:
    """The self-maintained views; without those whose sources have lost what they need."""
    found = []
    for definition in self_maintained(overview.catalog).values():
        with suppress(ViewkeeperError):
            found.append(kept_view(definition, overview.relations))
    return found
