"""A self-maintained view in words: what a change looks up, why it has this storage, what would be better."""

from collections.abc import Mapping

from viewkeeper.explaining.advice import advice_for
from viewkeeper.explaining.algorithm_words import MEANS
from viewkeeper.explaining.explanation import InWords, RelationCost
from viewkeeper.explaining.join_facts import asked, joined_relations, only_spark, with_known_sizes
from viewkeeper.explaining.measured import measured_of
from viewkeeper.explaining.queried_joins import UNKNOWN, told_of
from viewkeeper.explaining.situations import StoringJoin
from viewkeeper.explaining.sizes import known_sizes
from viewkeeper.explaining.storage_explanation import ChangeCost, SelfMaintained
from viewkeeper.explaining.wording import listed
from viewkeeper.levels import Level
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.automatic import JoinFacts, decide
from viewkeeper.planner.self_maintained.facts import facts_of
from viewkeeper.planner.self_maintained.kept_view import KeptView
from viewkeeper.sql.outer_join import OuterJoinView


def storing_join(
    overview: Overview,
    kept: KeptView,
    stored: SelfMaintained,
    *,
    created: bool,
    halted: str | None,
) -> InWords:
    """`stored` is what is stored for it, and what changes look up there."""
    view = kept.view
    sizes = known_sizes(overview)
    rows = _joined_rows(kept, stored)
    facts = with_known_sizes(facts_of(view, overview.sources.definitions(), overview.rates), sizes, rows)
    situation = StoringJoin(
        kept.name,
        kept.storage_name,
        joined_relations(overview, view, facts),
        kept.level,
        asked(view, "consistency"),
        isinstance(view, OuterJoinView),
        created,
        decide(facts),
        facts.fan_out is not None,
        sum(one.bytes or 0 for one in stored.structures) if created else None,
        only_spark(view) if stored.engines.always_spark else None,
        halted,
    )
    costs = tuple(_cost(change, facts, sizes, stored, situation) for change in stored.changes)
    measured = measured_of(overview, kept.name)
    return InWords(_how(kept, stored), _why(situation), costs, measured, advice_for(situation))


def _joined_rows(kept: KeptView, stored: SelfMaintained) -> int | None:
    """Rows of the whole join, where one table has just those."""
    if kept.storage_name == "outerjoin":
        return None
    return next(one.rows for one in stored.structures if one.table == stored.reading.table)


def _cost(
    change: ChangeCost, facts: JoinFacts, sizes: Mapping[str, int], stored: SelfMaintained, situation: StoringJoin
) -> RelationCost:
    relation = change.relation.split(" ")[0]
    size = sizes.get(relation)
    each = facts.rows / size if facts.rows is not None and size else None
    told = UNKNOWN if each is None else f"about {each:.2g} for each"
    rate = next((one.transactions_per_hour for one in facts.relations if one.name == relation), None)
    return RelationCost(change.relation, 0, 0, (), each, told, len(change.lookups), _work(stored, situation), rate)


def _work(stored: SelfMaintained, situation: StoringJoin) -> str:
    engines = stored.engines
    if engines.always_spark:
        return f"a Spark job, for {situation.only_spark}" if situation.only_spark else "a Spark job"
    large = [one.table for one in stored.structures if (one.rows or 0) > engines.driver_table_rows]
    if large:
        return f"on the driver; a Spark job where {listed(large)} is looked up"
    return f"on the driver, up to {engines.arrow_up_to:,} changed rows"


def _how(kept: KeptView, stored: SelfMaintained) -> tuple[str, ...]:
    tables = [f"{one.table} ({one.holds})" for one in stored.structures]
    looked_up = [
        f"A change of {change.relation} is looked up in {listed(lookup.table for lookup in change.lookups)}."
        for change in stored.changes
    ]
    changed = "that table" if len(tables) == 1 else f"these {len(tables)} tables"
    read = (
        f"Readers see {stored.reading.table}, which has whole rows."
        if not stored.reading.copies
        else f"Readers see the rows that {stored.reading.table} points to, in the copies."
    )
    return (
        told_of(kept.sources),
        f"All that is needed to find partners is stored here, so no source is queried: {'; '.join(tables)}.",
        *looked_up,
        f"What goes and comes in {changed} is committed together with the state.",
        read,
    )


def _why(situation: StoringJoin) -> tuple[str, ...]:
    level = situation.level
    if situation.asked_level is None:
        decided = "no 'consistency' was requested, and this costs no question"
    elif str(level) == situation.asked_level:
        decided = f"'consistency' = '{situation.asked_level}' was requested"
    else:
        decided = f"'consistency' = '{situation.asked_level}' was requested, and strong costs no more"
    states = "" if level is Level.COMPLETE else "; all that has gathered becomes one"
    return (f"{level}, because {decided}: {MEANS[level]}{states}",)
