"""A join whose sources are queried, in words: what its algorithm does, what each relation costs, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewkeeper.algebra.adaptive import MOST_BYTES, MOST_ROWS
from viewkeeper.algorithms.registry import Transactions, algorithm
from viewkeeper.explaining.advice import advice_for
from viewkeeper.explaining.algorithm_words import (
    COMPUTES,
    KNOWN_FROM_THE_VIEW,
    MEANS,
    READ_THE_VIEW,
    questions,
)
from viewkeeper.explaining.explanation import InWords, RelationCost
from viewkeeper.explaining.join_facts import asked, joined_relations, only_spark, room_of, with_known_sizes
from viewkeeper.explaining.measured import measured_of
from viewkeeper.explaining.situations import AskingJoin
from viewkeeper.explaining.sizes import known_sizes
from viewkeeper.explaining.summary_explanation import Step, Sweep
from viewkeeper.explaining.wording import listed
from viewkeeper.levels import Level
from viewkeeper.mediator.choice import CHEAPEST, promised
from viewkeeper.mediator.maintained import Maintenance, relies_on_single
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.automatic import JoinFacts, RelationFacts, decide
from viewkeeper.planner.self_maintained.facts import facts_of

ON_DRIVER = f"on the driver, up to {MOST_BYTES >> 20} MB"
UNKNOWN = "unknown yet"


def asking_join(
    overview: Overview,
    how: Maintenance,
    sweeps: Sequence[Sweep],
    *,
    rows: int | None,
    halted: str | None = None,
) -> InWords:
    """`rows` are those of the view, if it is there."""
    view = how.view
    sizes = known_sizes(overview)
    facts = replace(facts_of(view, overview.sources.definitions(), overview.rates), algorithm=None)
    facts = with_known_sizes(facts, sizes, rows)
    situation = AskingJoin(
        view.name,
        joined_relations(overview, view, facts),
        how.algorithm,
        promised(how),
        how.transactions,
        asked(view, "algorithm"),
        asked(view, "consistency"),
        how.parts is not None,
        decide(facts),
        facts.fan_out is not None,
        room_of(facts),
        only_spark(view),
        rows,
        halted,
    )
    costs = tuple(_cost(how, sweep, sizes, rows, facts, situation) for sweep in sweeps)
    return InWords(
        _how(situation, sweeps), _why(how, situation), costs, measured_of(overview, view.name), advice_for(situation)
    )


# --- what a change costs ---


def _cost(
    how: Maintenance,
    sweep: Sweep,
    sizes: Mapping[str, int],
    rows: int | None,
    facts: JoinFacts,
    situation: AskingJoin,
) -> RelationCost:
    parts = how.parts
    joined = len((parts.assembly if parts else how.view).operands)
    number, of_deletion = questions(how.algorithm, len(sweep.messages), sweep.messages_inside, joined)
    asks = tuple(step.source for step in sweep.messages)
    if how.algorithm in ("eca", "eca-key"):
        asks = asks[:1]
    if how.algorithm == "recompute":
        asks = situation.sources
    started = sweep.start.split(" ")[0]
    expected, told = expected_rows(how.algorithm, sweep.steps, sizes.get(started), rows)
    rate = next((one.transactions_per_hour for one in facts.relations if one.name == started), None)
    return RelationCost(
        sweep.start, number, of_deletion, asks, expected, told, 0, _work(facts.relations, asks, situation), rate
    )


def expected_rows(
    algorithm: str, steps: Sequence[Step], start_rows: int | None, view_rows: int | None
) -> tuple[float | None, str]:
    """The rows that come back for each changed row, and that in words.

    A step by a key brings at most one row. If one step is by other columns, what it brings is what the view has for
    each row of the relation that changes.
    """
    if algorithm == "recompute":
        return None, "all rows of all relations"
    if not steps:
        return 0.0, "none"
    whole = [step.relation for step in steps if not step.by]
    if whole:
        return None, f"all of {listed(whole)}"
    several = [number for number, step in enumerate(steps) if not step.at_most_one]
    if not several:
        return float(len(steps)), f"at most {len(steps)} for each"
    if len(several) == 1 and start_rows and view_rows is not None:
        first = several[0]
        expected = first + view_rows / start_rows * (len(steps) - first)
        return expected, f"about {expected:.2g} for each"
    return None, UNKNOWN


def _work(relations: Sequence[RelationFacts], asks: Sequence[str], situation: AskingJoin) -> str:
    slow = [name for name in dict.fromkeys(asks) if any(one.source == name and not one.quick for one in relations)]
    if slow:
        return f"a Spark job for each question to {listed(slow)}"
    if situation.only_spark is not None:
        return f"a Spark job, for {situation.only_spark}"
    if situation.large and situation.algorithm in READ_THE_VIEW:
        return f"a Spark job: {situation.algorithm} reads the view, which has more than {MOST_ROWS:,} rows"
    return ON_DRIVER


# --- how, and why ---


def told_of(sources: Sequence[str]) -> str:
    """How every refresh begins."""
    names = listed(sources)
    if len(sources) == 1:
        return f"{names} sends the warehouse each transaction that it commits: which rows went, and which came."
    return f"{names} each send the warehouse their transactions as they commit: which rows went, and which came."


def _how(join: AskingJoin, sweeps: Sequence[Sweep]) -> tuple[str, ...]:
    if join.algorithm == "recompute":
        computes = [COMPUTES[join.algorithm]]
    elif any(sweep.steps for sweep in sweeps):
        computes = [f"A change of {sweep.start}: {_way(sweep)}." for sweep in sweeps] + [COMPUTES[join.algorithm]]
    else:
        computes = ["Conditions and columns of the view are applied to these rows here. No source is queried."]
    if any(sweep.steps for sweep in sweeps) and algorithm(join.algorithm).needs_keys and join.level >= Level.STRONG:
        computes.append(KNOWN_FROM_THE_VIEW)
    last = "The rows of the view that go and come are committed together with their state."
    return (told_of(join.sources), *computes, last)


def _way(sweep: Sweep) -> str:
    told = ""
    for step in sweep.steps:
        rows = f"the rows of {step.relation}{_joining(step)}"
        if step.together:
            told += f", together with {rows}"
        else:
            told += f"{', then ' if told else ''}{step.source} is queried for {rows}"
    return told


def _joining(step: Step) -> str:
    return f" with {' and '.join(step.conditions)}" if step.conditions else ", all of them"


def _why(how: Maintenance, join: AskingJoin) -> tuple[str, ...]:
    why = [
        f"{join.level}, because {_why_level(join)}: {MEANS[join.level]}",
        f"{how.algorithm}, because {_why_algorithm(how, join)}",
    ]
    if how.transactions is Transactions.GLOBAL:
        kept = "are kept whole" if join.level >= Level.STRONG else "are seen in parts"
        why.append(f"transactions may span {listed(join.sources)}, which have a table global_tx: they {kept}")
    if how.transactions is Transactions.SINGLE:
        several = ": a larger one halts the view" if relies_on_single(how) else ""
        why.append(f"each transaction of {listed(join.sources)} is a single update, as was declared{several}")
    if how.parts is not None:
        together = [local for views in how.parts.local_views.values() for local in views if len(local.operands) > 1]
        names = listed(operand.relation.name for local in together for operand in local.operands)
        others = ": to all others they are one relation" if len(join.sources) > 1 else ""
        why.append(f"{names} are at one source and are joined there first{others}")
    return tuple(why)


def _why_level(join: AskingJoin) -> str:
    if join.asked_level is not None:
        more = "" if str(join.level) == join.asked_level else f", and {join.algorithm} reaches {join.level}"
        return f"'consistency' = '{join.asked_level}' was requested{more}"
    if join.asked_algorithm is not None:
        return f"that is what {join.algorithm} reaches for {join.transactions} transactions"
    return "no 'consistency' was requested, and it is the highest"


def _why_algorithm(how: Maintenance, join: AskingJoin) -> str:
    if join.asked_algorithm is not None:
        return "it was requested"
    if how.algorithm == CHEAPEST:
        better = "it needs no keys, is complete, and asks less for each transaction the more come at once"
        return f"no 'algorithm' was requested: {better}"
    return "the view has been maintained by it from the start"
