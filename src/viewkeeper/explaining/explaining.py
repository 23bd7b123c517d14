"""`explain`: how a view is maintained, or would be; told without asking a source and without Spark.

a join       its algorithm, and the order in which each change is joined; if it is self-maintained, what is stored
a summary    its place in the lattice, what it stores, what it is computed from and why, by which statements
a family     each of its tables
"""

import re
from collections.abc import Iterable

from viewkeeper.explaining.derived_views import LOADED, hidden_table, over_views
from viewkeeper.explaining.explained_join import maintenance, sweeps
from viewkeeper.explaining.explained_operators import explain_operators
from viewkeeper.explaining.explained_storage import explain_stored, explain_supposed
from viewkeeper.explaining.explained_table import LatticeExplained
from viewkeeper.explaining.explanation import InWords
from viewkeeper.explaining.queried_joins import asking_join
from viewkeeper.explaining.summaries import summing
from viewkeeper.explaining.summary_explanation import Explanation, LatticeFacts, Sweep
from viewkeeper.lake.log.catalog import Definition, families, find
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.maintenance.explained_query import QueryExplanation, explain_query
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.planner.composed.composed_view import composed_view
from viewkeeper.planner.composed.naming import COMPOSED
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.planning import plan_view
from viewkeeper.planner.self_maintained.automatic import REMOTE
from viewkeeper.planner.self_maintained.choosing import PROPERTY, REASONS
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED
from viewkeeper.planner.summaries.decision import TOO_FEW, WORTH_RECOMPUTING, decide
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.summaries.supposed import supposed
from viewkeeper.planner.view_plan import PlannedQuery, PlannedSummary, QueriedJoin, StoredJoin
from viewkeeper.planner.view_properties import ALGORITHM, LEVEL, SOURCES, SQL, VIEWS
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.refresh_mode import Refresh, RefreshMode
from viewkeeper.sql.summary_view import Family
from viewkeeper.summary.plan import CHANGES

_CREATE = re.compile(r"\s*create\s", re.IGNORECASE)
_QUERY = re.compile(r"[\s(]*(select|with)\s", re.IGNORECASE)
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def explain(snapshot: HeldCommit, sources: KnownSources, text: str) -> Explanation | QueryExplanation:
    """A view by its name, one that is not there yet by its CREATE, or a query; UnknownView for anything else."""
    overview = Overview(snapshot, sources)
    if text in families(overview.catalog):
        return _stored_tables(overview, text, [member.name for member in families(overview.catalog)[text]])
    if text not in overview.catalog and _QUERY.match(text):
        return explain_query(snapshot, text)
    if text not in overview.catalog and _CREATE.match(text):
        return _supposed(overview, text)
    definition = find(overview.catalog, text)
    if SUMMARY in definition.properties:
        return _stored_tables(overview, text, [text])
    if COMPOSED in definition.properties:
        return explain_operators(overview, composed_view(definition), created=True)
    if SELF_MAINTAINED in definition.properties:
        return explain_stored(overview, definition)
    return _stored_join(overview, definition)


# --- joins ---


def _stored_join(overview: Overview, stored: Definition) -> Explanation:
    told, group = stored.properties, overview.record.groups[stored.group]
    halt = overview.halts.get(stored.name)
    reason = halt.reason if halt is not None else None
    hidden = hidden_table(overview, stored)
    maintained = SQL in told
    view = parse_view(told[SQL], overview.relations, name=stored.name) if maintained else None
    how = maintenance(view, overview.sources, told.get(ALGORITHM)) if view is not None else None
    ways = sweeps(how) if how is not None else ()
    words = hidden or LOADED
    if how is not None and hidden is None:
        words = _words_of_join(overview, how, ways, overview.rows(stored.name), reason)
    return Explanation(
        stored.name,
        "hidden" if hidden is not None else "join" if maintained else "loaded",
        True,
        told.get(SQL),
        stored.group,
        told.get(ALGORITHM),
        told.get(LEVEL),
        "continuous" if maintained or hidden is not None else "by commits of its own",
        tuple(told.get(SOURCES, ())),
        tuple(view.relations) if view is not None else (),
        overview.rows(stored.name),
        group.last,
        reason,
        ways,
        storage_asked=told.get(PROPERTY),
        storage=REMOTE if maintained and hidden is None else None,
        storage_reasons=_why_remote(stored) if maintained and hidden is None else (),
        in_words=words,
    )


def _words_of_join(
    overview: Overview,
    how: Maintenance,
    ways: tuple[Sweep, ...],
    rows: int | None,
    halted: str | None = None,
) -> InWords:
    """`rows` and `halted` are those of a view that is there."""
    if VIEWS in how.view.sources:
        return over_views(overview, how.view, ways, halted, rows)
    return asking_join(overview, how, ways, rows=rows, halted=halted)


def _why_remote(stored: Definition) -> tuple[str, ...]:
    told = stored.properties
    asked = "it was requested" if PROPERTY in told else "nothing else was requested"
    return tuple(told.get(REASONS, ())) or (asked,)


def _supposed(overview: Overview, sql: str) -> Explanation:
    """A view that is not there yet; the error that creating it would end with."""
    plan = plan_view(overview, sql)
    match plan:
        case QueriedJoin():
            return _supposed_join(overview, plan)
        case StoredJoin():
            return explain_supposed(overview, plan)
        case PlannedSummary():
            return _supposed_tables(overview, plan)
        case PlannedQuery():
            return explain_operators(overview, plan.view, created=False)


def _supposed_join(overview: Overview, plan: QueriedJoin) -> Explanation:
    view, ways = plan.definition, sweeps(plan.how)
    return Explanation(
        view.name,
        "join",
        False,
        view.sql,
        plan.group,
        plan.how.algorithm,
        str(plan.level),
        "continuous",
        tuple(source for source in view.sources if source != VIEWS),
        tuple(view.relations),
        None,
        None,
        None,
        ways,
        storage_asked=dict(view.properties).get(PROPERTY),
        storage=REMOTE,
        storage_reasons=plan.reasons,
        in_words=_words_of_join(overview, plan.how, ways, None),
    )


# --- summaries ---


def _stored_tables(overview: Overview, view: str, names: Iterable[str]) -> Explanation:
    names = list(names)
    lattice = overview.lattice(overview.catalog[names[0]].group)
    halt = next((overview.halts[name] for name in names if name in overview.halts), None)
    kind = "hidden" if lattice.nodes[names[0]].hidden else "summary" if view in lattice.tables else "family"
    sql = lattice.tables[names[0]].defined.view.sql
    reason = halt.reason if halt is not None else None
    return _tables(overview, lattice, view, kind, sql, names, created=True, halted=reason)


def _supposed_tables(overview: Overview, plan: PlannedSummary) -> Explanation:
    parsed = plan.parsed
    lattice, names = supposed(parsed, overview.lattices, overview.hierarchies.determined, overview.foreign_keys)
    kind = "family" if isinstance(parsed, Family) else "summary"
    return _tables(overview, lattice, parsed.name, kind, parsed.sql, names, created=False)


def _tables(
    overview: Overview,
    lattice: Lattice,
    view: str,
    kind: str,
    sql: str,
    names: Iterable[str],
    *,
    created: bool,
    halted: str | None = None,
) -> Explanation:
    explained = LatticeExplained(overview, lattice)
    tables = tuple(map(explained.table, names))
    dimensions = {d.relation.name: d.relation for table in tables for d in lattice.nodes[table.table].dimensions}
    relations = {lattice.fact.name: lattice.fact, **dimensions}
    group = overview.record.groups.get(lattice.name)
    facts = _facts(explained)
    return Explanation(
        view,
        kind,
        created,
        sql,
        lattice.name,
        "summary-delta",
        str(lattice.level),
        told_refresh(lattice.refresh),
        tuple(sorted({one.source for one in relations.values()} - {VIEWS})),
        tuple(relations),
        sum(table.rows or 0 for table in tables) if created else None,
        group.last if created and group is not None else None,
        halted,
        lattice=facts,
        tables=tables,
        in_words=summing(view, explained, facts, tables, halted),
    )


def _facts(explained: LatticeExplained) -> LatticeFacts:
    overview, lattice = explained.overview, explained.lattice
    learned = overview.learned(lattice)
    known = learned.refreshes > 0
    return LatticeFacts(
        lattice.name,
        lattice.fact.name,
        tuple(sorted(relation for relation in lattice.facts.copies)),
        lattice.facts.readable,
        _when_recomputed(overview, lattice),
        learned.refreshes,
        learned.rows.get(CHANGES),
        learned.propagate if known else None,
        learned.refresh if known else None,
        learned.recompute,
        sum(overview.rows(lattice.log(view)) or 0 for view in lattice.inputs),
        sum(overview.rows(lattice.pending(node)) or 0 for node in lattice.nodes),
        explained.last_refresh,
        overview.last_propagation(lattice),
        tuple(
            f"{relation}: {chain}"
            for relation in sorted(lattice.facts.copies)
            if (hierarchy := overview.hierarchies.of(relation)) is not None
            for chain in hierarchy.lines
        ),
    )


def _when_recomputed(overview: Overview, lattice: Lattice) -> str:
    if not lattice.facts.readable:
        return "never: the facts are not stored, so there is nothing to recompute the tables from"
    learned = overview.learned(lattice)
    facts = overview.rows(lattice.facts.feed) or 0
    usual = round(learned.rows.get(CHANGES, 0))
    decision = decide(learned, usual, facts)
    if decision.incremental is not None and decision.recomputed is not None:
        return f"when a refresh is expected to take longer than that: {decision.reason}"
    most = max(TOO_FEW, round(facts * WORTH_RECOMPUTING))
    return f"when more than {most:,} rows change at once: there are {facts:,} facts"


def told_refresh(refresh: Refresh) -> str:
    """continuous, manual, or every 5 minutes."""
    if refresh.mode is not RefreshMode.EVERY or refresh.seconds is None:
        return refresh.mode.value
    unit, seconds = next((unit, seconds) for unit, seconds in _UNITS if refresh.seconds % seconds == 0)
    number = refresh.seconds // seconds
    return f"every {number} {unit}s" if number > 1 else f"every {unit}"
