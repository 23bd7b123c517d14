"""Summaries in words: how changes are added up, why at this level, what a change costs, what would be better."""

from collections.abc import Sequence

from viewkeeper.explaining.advice import advice_for
from viewkeeper.explaining.algorithm_words import MEANS
from viewkeeper.explaining.explained_table import LatticeExplained, called
from viewkeeper.explaining.explanation import InWords, Measured, RelationCost
from viewkeeper.explaining.hierarchies import missing_hierarchies
from viewkeeper.explaining.measured import measured_of
from viewkeeper.explaining.queried_joins import UNKNOWN, told_of
from viewkeeper.explaining.situations import ExtremeFacts, MemberFacts, SummarizedFacts
from viewkeeper.explaining.summary_explanation import LatticeFacts, Table
from viewkeeper.explaining.wording import listed
from viewkeeper.levels import Level
from viewkeeper.maintenance.contents import SMALL
from viewkeeper.maintenance.summaries.input_changes import MOST_CHANGES_ON_DRIVER
from viewkeeper.maintenance.summaries.round import MOST_ON_DRIVER_AT_ONCE
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.refresh_mode import RefreshMode
from viewkeeper.summary.plan import CHANGES
from viewkeeper.summary.propagate_arrow import evaluable


def summing(
    view: str, explained: LatticeExplained, facts: LatticeFacts, tables: Sequence[Table], halted: str | None
) -> InWords:
    """`tables` are the one of a summary, or the members of a family."""
    overview, lattice = explained.overview, explained.lattice
    measured = measured_of(overview, tables[0].table)
    situation = _situation(view, explained, facts, tables, halted, measured)
    return InWords(
        _how(lattice, tables),
        _why(lattice, tables),
        _costs(overview, explained, facts, tables),
        measured,
        advice_for(situation) if not tables[0].hidden else (),
    )


def _situation(
    view: str,
    explained: LatticeExplained,
    facts: LatticeFacts,
    tables: Sequence[Table],
    halted: str | None,
    measured: Measured | None,
) -> SummarizedFacts:
    overview, lattice = explained.overview, explained.lattice
    rows = {table.table: table.rows for table in tables}
    # Of the newest commits, as it is told beside it; what was learned before them is all there is for want of any.
    takes = measured.own_seconds if measured is not None else None
    if takes is None and facts.refreshes:
        takes = (facts.propagate_seconds or 0) + (facts.refresh_seconds or 0)
    return SummarizedFacts(
        view,
        lattice.fact.name,
        lattice.level,
        not lattice.deferred,
        lattice.refresh.mode is RefreshMode.MANUAL,
        overview.rows(lattice.facts.feed) if lattice.facts.readable else None,
        takes,
        overview.rates.get(lattice.fact.source),
        facts.waiting_changes + facts.waiting_rows,
        tuple(
            ExtremeFacts(called(one), one.node, one.recomputed, overview.rows(one.node))
            for table in tables
            for one in lattice.nodes[table.table].extremes
        ),
        tuple(
            MemberFacts(table.table, table.rows, above, rows[above] or 0)
            for table in tables
            if table.rows is not None and (above := _chosen(table)) in rows
        ),
        missing_hierarchies(explained, tables),
        halted,
    )


def _chosen(table: Table) -> str:
    return next(one.above for one in table.choices if one.chosen)


# --- what a change costs ---


def _costs(
    overview: Overview, explained: LatticeExplained, facts: LatticeFacts, tables: Sequence[Table]
) -> tuple[RelationCost, ...]:
    lattice = explained.lattice
    touched = len(explained.plan.edges)
    each, told = None, UNKNOWN
    if facts.refreshes and facts.usual_changes:
        expected = sum(table.expected_rows for table in tables)
        each = expected / facts.usual_changes
        told = f"about {each:.2g} for each"
    dimensions = dict.fromkeys(d.relation for table in tables for d in lattice.nodes[table.table].dimensions)
    work = _work(overview, explained)
    own = [
        RelationCost(lattice.fact.name, 0, 0, (), each, told, touched, work, overview.rates.get(lattice.fact.source))
    ]
    others = [
        RelationCost(one.name, 0, 0, (), None, UNKNOWN, touched, work, overview.rates.get(one.source))
        for one in dimensions
    ]
    return (*own, *others)


def _work(overview: Overview, explained: LatticeExplained) -> str:
    """As `round.py` decides it."""
    lattice = explained.lattice
    if not evaluable(explained.plan.edges):
        return "a Spark job: an expression is evaluated by Spark alone"
    large = [relation for relation, view in lattice.facts.copies.items() if (overview.rows(view) or 0) > SMALL]
    if large:
        return f"a Spark job: {large[0]} has more than {SMALL:,} rows"
    on_driver = f"on the driver, up to {MOST_CHANGES_ON_DRIVER:,} changed rows"
    if any((overview.rows(name) or 0) > MOST_ON_DRIVER_AT_ONCE for name in lattice.tables):
        return f"{on_driver}; a Spark job if a dimension changes"
    return on_driver


# --- how, and why ---


def _how(lattice: Lattice, tables: Sequence[Table]) -> tuple[str, ...]:
    fact = lattice.fact
    dimensions = {d.relation for table in tables for d in lattice.nodes[table.table].dimensions}
    sources = dict.fromkeys(one.source for one in (fact, *sorted(dimensions, key=lambda one: one.name)))
    if fact.source == VIEWS:
        first = f"{fact.name} is a view of this warehouse, and each of its states brings the rows that went and came."
    else:
        first = told_of([name for name in sources if name != VIEWS])
    return (
        first,
        f"The changed rows of {fact.name} are added up: by how much each count and sum of each group changes. "
        f"{_ways(tables)}",
        *_dimensions(lattice, tables),
        "Only the groups in it are touched: they are added to, inserted if they are new, and deleted when nothing is "
        "left in them. No source is queried.",
        *(line for table in tables[:1] for line in table.recomputed),
        _when(lattice),
    )


def _ways(tables: Sequence[Table]) -> str:
    above = _chosen(tables[0])
    if len(tables) > 1:
        return f"That is a summary-delta; each of the {len(tables)} tables has one, from the changes or from another."
    if above == CHANGES:
        return "That is its summary-delta."
    return f"Its summary-delta is computed from that of {above}."


def _dimensions(lattice: Lattice, tables: Sequence[Table]) -> tuple[str, ...]:
    relations = {d.relation.name: d.relation for table in tables for d in lattice.nodes[table.table].dimensions}
    if not relations:
        return ()
    copied = sorted(name for name, relation in relations.items() if relation.source != VIEWS)
    copies = f"{listed(copied)} {'is' if len(copied) == 1 else 'are'} kept here as a copy. " if copied else ""
    roots = dict.fromkeys(one.table for table in tables for one in table.served_by if one.why.startswith("root"))
    found = next(iter(roots), "the stored facts" if lattice.facts.readable else _chosen(tables[0]))
    return (
        f"{copies}A change of {listed(sorted(relations))} moves facts between groups; which ones, is found in {found}.",
    )


def _when(lattice: Lattice) -> str:
    if not lattice.deferred:
        return "All of this happens in the commit that brings the changes."
    start = "you call `refresh`" if lattice.refresh.mode is RefreshMode.MANUAL else "its time has come"
    return f"Changes are noted as they come. `propagate` adds them up; they are applied when {start}, all at once."


def _why(lattice: Lattice, tables: Sequence[Table]) -> tuple[str, ...]:
    level = lattice.level
    if level is Level.COMPLETE:
        decided = "'consistency' = 'complete' was requested"
    else:
        decided = "complete was not requested, and a refresh may take several transactions together"
    why = [
        f"{level}, because {decided}: {MEANS[level]}",
        "summary-delta, because it groups: changes are added up, and that takes no question",
    ]
    extremes = [
        one for table in tables for one in lattice.nodes[table.table].extremes if one.function in ("min", "max")
    ]
    if any(extreme.recomputed for extreme in extremes):
        why.append("extremes are recomputed from the facts, because 'minmax' = 'recompute' was requested")
    elif extremes:
        why.append("a hidden table serves MIN and MAX, because 'minmax' = 'recompute' was not requested")
    if lattice.facts.readable and lattice.fact.source != VIEWS:
        why.append(f"the rows of {lattice.fact.name} are stored, because 'core' = 'stored' was requested")
    return tuple(why)
