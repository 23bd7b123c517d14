"""A summary that is not there yet, in the lattice that it would join, with the hidden tables that it would need."""

from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.lake.log.catalog import Definition, Layout
from viewkeeper.levels import Level
from viewkeeper.planner.summaries.foreign_keys import DeclaredForeignKeys
from viewkeeper.planner.summaries.lattice import Facts, Lattice, Table, lattice_name
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.refresh_mode import refresh_of
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.summary.defined import Defined, defined
from viewkeeper.summary.derivation import Determined
from viewkeeper.summary.hidden_nodes import Part, with_hidden
from viewkeeper.summary.node import Node
from viewkeeper.summary.statements import stored_types


def supposed(
    parsed: SummaryView | Family,
    lattices: Mapping[str, Lattice],
    determined: Determined | None,
    foreign_keys: DeclaredForeignKeys | None = None,
) -> tuple[Lattice, tuple[str, ...]]:
    """The lattice with the new tables in it, and the names of those that were asked for."""
    properties = dict(parsed.properties)
    recompute = properties.get("minmax") == "recompute"
    views = [member.view for member in parsed.members] if isinstance(parsed, Family) else [parsed]
    made = [defined(view, recompute=recompute) for view in views]
    fact = made[0].star.fact
    lattice = lattices.get(lattice_name(fact.name, properties))
    if lattice is None:
        lattice = replace(_new_lattice(fact, properties, parsed, determined), foreign_keys=foreign_keys)
    tables, virtual = dict(lattice.tables), dict(lattice.virtual)
    for one in made:
        copies = {d.relation.name: d.relation.name for d in one.star.dimensions}
        facts = replace(lattice.facts, copies={**copies, **lattice.facts.copies})
        lattice = replace(lattice, facts=facts)
        whole = with_hidden(
            one,
            [table.node for table in tables.values()],
            core_readable=facts.readable,
            recompute=recompute,
        )
        for node, part in (*whole.hidden, (whole.node, None)):
            if node.stored:
                tables[node.name] = _table(node, part, one, lattice.name)
            else:
                virtual[node.name] = node
    return replace(lattice, tables=tables, virtual=virtual), tuple(view.name for view in views)


def _new_lattice(
    fact: Relation, properties: Mapping[str, str], parsed: SummaryView | Family, determined: Determined | None
) -> Lattice:
    name = lattice_name(fact.name, properties)
    readable = fact.source == VIEWS or properties.get("core") == "stored"
    complete = properties.get("consistency") == "complete"
    return Lattice(
        name,
        Facts(f"{name} feed", fact.name, fact.name, readable),
        fact,
        refresh_of(parsed.properties),
        Level.COMPLETE if complete else Level.STRONG,
        {},
        determined=determined,
    )


def _table(node: Node, part: Part | None, made_for: Defined, group: str) -> Table:
    told = {} if part is None else {"part": {"extreme": part.extreme, "root_of": list(part.root_of)}}
    columns = tuple(stored_types(node).items())
    definition = Definition(node.name, "", group, Layout.REWRITTEN, columns, 0, properties={SUMMARY: told})
    return Table(definition, node, made_for)
