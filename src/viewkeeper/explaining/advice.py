"""What the user could change to make a view cheaper or stronger: one small rule for each thing.

    facts of a view  ⟶  advice, if the facts call for it; else nothing

A rule says only what follows from the facts that it is given, and what the change would cost.
"""

from collections.abc import Callable, Iterable, Iterator

from viewkeeper.algorithms.registry import Algorithm, Transactions, algorithm, serving
from viewkeeper.explaining.algorithm_words import READ_THE_VIEW
from viewkeeper.explaining.explanation import Advice
from viewkeeper.explaining.situations import (
    AskingJoin,
    JoinedRelation,
    Situation,
    StoringJoin,
    SummarizedFacts,
)
from viewkeeper.explaining.wording import counted, in_sql, listed, room
from viewkeeper.levels import Level
from viewkeeper.mediator.choice import CHEAPEST
from viewkeeper.planner.self_maintained.automatic import BUSY, REMOTE

ALMOST_ALL = 0.9
"""rows of a table for each of the one above it, from which on it saves its readers little"""
WORTH_LEAVING_OUT = 1_000
"""rows of a table that is worth a thought"""
WORTH_MOVING = 1_000_000
"""bytes that are worth being stored otherwise"""
NEARLY_THE_FACTS = 0.5
"""rows of a hidden table for each fact, from which on it is nearly a copy of the facts"""

Rule = Callable[..., Iterable[Advice]]


def advice_for(facts: Situation) -> tuple[Advice, ...]:
    """Everything that can be said, what is urgent first."""
    rules = {AskingJoin: OF_ASKING_JOINS, StoringJoin: OF_STORING_JOINS, SummarizedFacts: OF_SUMMARIES}[type(facts)]
    return tuple(one for rule in (_make_it_anew, *rules) for one in rule(facts))


def _make_it_anew(facts: Situation) -> Iterator[Advice]:
    if facts.halted is not None:
        yield Advice(
            "halted", f"recreate {facts.view}", "it is not maintained until then", f"viewkeeper reload {facts.view}"
        )


# --- joins whose sources are queried ---


def _stronger_algorithm(join: AskingJoin) -> Iterator[Advice]:
    def fits(other: Algorithm) -> bool:
        """As `registry.prepare` has it."""
        keys, one_source = not (other.needs_keys and join.keyless), not (other.one_source and len(join.sources) > 1)
        return keys and one_source and (other.over_wrapper or not join.wrapped)

    best = serving(join.transactions, Level.COMPLETE, fits)
    if join.level >= Level.COMPLETE or CHEAPEST not in best:
        return
    now, better = algorithm(join.algorithm), algorithm(CHEAPEST)
    span = listed(join.sources)
    n = "" if join.wrapped else f" (n = {len(join.relations)})"
    whole = f"transactions span {span}, and {now.name} does not keep them whole; " * (
        join.transactions is Transactions.GLOBAL and join.level < Level.STRONG
    )
    yield Advice(
        "stronger-algorithm",
        f"leave 'algorithm' out, or use {CHEAPEST}",
        f"{whole}it would be complete instead of {join.level}; questions: {better.queries}, now {now.queries}{n}",
        f"'algorithm' = '{CHEAPEST}'",
    )


def _without_questions(join: AskingJoin) -> Iterator[Advice]:
    storage, reasons = join.automatic.storage, join.automatic.reasons
    if storage == REMOTE:
        return
    takes = "what it takes is known when it is made" if join.room is None else f"it takes about {room(join.room)}"
    also = ", and leave 'algorithm' out" if join.asked_algorithm else ""
    chosen = storage if join.sizes_known or storage != "viewcache" else "viewcache or matview, by the sizes"
    yield Advice(
        "without-questions",
        f"let viewkeeper store what the view needs ({chosen}){also}",
        f"no source would be queried; {takes}. As it is, {_at_present(join, reasons[0])}",
        "'storage' = 'auto'",
    )


def _deletions_for_nothing(join: AskingJoin) -> Iterator[Advice]:
    keyed = "g-strobe" if join.transactions is Transactions.GLOBAL else "t-strobe"
    enough = join.asked_level is not None and Level[join.asked_level.upper()] <= Level.STRONG
    asks_always = not algorithm(join.algorithm).needs_keys and join.algorithm != "recompute"
    joined = len(join.relations) > 1 and not join.wrapped
    if enough and asks_always and not join.keyless and joined and not join.large:
        yield Advice(
            "deletions-for-nothing",
            f"use {keyed}, since {join.asked_level} is enough and every relation has a key",
            "a deletion would query no source. The keys are stored beside the view, the view is read for each state, "
            "and new states come only when no question is out",
            f"'algorithm' = '{keyed}'",
        )


def _without_waiting_for_quiet(join: AskingJoin) -> Iterator[Advice]:
    busy = _busy(join.relations)
    if algorithm(join.algorithm).needs_quiet and busy is not None:
        yield Advice(
            "without-quiet",
            f"leave 'algorithm' out, or use {CHEAPEST}",
            f"{join.algorithm} shows nothing new while a question is out, and {busy.source} has had some "
            f"{busy.transactions_per_hour:,.0f} transactions an hour; {CHEAPEST} does not wait",
            f"'algorithm' = '{CHEAPEST}'",
        )


def _without_reading_the_view(join: AskingJoin) -> Iterator[Advice]:
    if join.large and join.algorithm in READ_THE_VIEW:
        yield Advice(
            "without-reading",
            f"leave 'algorithm' out, or use {CHEAPEST}",
            f"{join.algorithm} reads the view for each state, and its {join.rows:,} rows take a job of Spark; "
            f"{CHEAPEST} does not read it",
            f"'algorithm' = '{CHEAPEST}'",
        )


def _remembered_by_key(join: AskingJoin) -> Iterator[Advice]:
    for one, by in _looked_up(join):
        # What is joined at its source comes as a whole, and is not remembered.
        if one.key is None and one.key_can_be_declared and not join.wrapped:
            columns = ",".join(by)
            yield Advice(
                "declare-key",
                f"declare the key of {one.name}, if {columns} is one",
                "its rows are then remembered when they are found, and not asked for again while it runs",
                f"viewkeeper add-source {one.source} URL --key {one.table}={columns}",
            )


def _index(join: AskingJoin) -> Iterator[Advice]:
    for one, by in _looked_up(join):
        if one.database and not one.is_key(by):
            table = ".".join(in_sql(part, one.quote) for part in one.table.split("."))
            index = in_sql(f"{one.table.rpartition('.')[2]}_by_{'_'.join(by)}", one.quote)
            yield Advice(
                "index",
                f"check that {one.source} has an index on {one.table} ({', '.join(by)})",
                "each question about it is then a lookup; without one all of the table is read",
                f"CREATE INDEX {index} ON {table} ({', '.join(in_sql(name, one.quote) for name in by)})",
            )


def _equality(join: AskingJoin) -> Iterator[Advice]:
    for one in join.relations:
        if () in one.ways:
            yield Advice(
                "equality",
                f"join {one.name} by an equality of columns, if the view allows it",
                "there is none between it and another relation, so a change of another one brings all of its rows here",
            )


# --- self-maintained views ---


def _ask_instead(join: StoringJoin) -> Iterator[Advice]:
    if join.automatic.storage == REMOTE and not join.outer:
        frees = f"that frees {room(join.bytes)}; " if join.bytes else ""
        questions = len(join.relations) - 1
        yield Advice(
            "ask-instead",
            "query the sources instead of storing anything beside the view",
            f"{frees}each change would cost at most {counted(questions, 'question')}. {join.automatic.reasons[0]}",
            "'storage' = 'remote'",
        )


def _other_storage(join: StoringJoin) -> Iterator[Advice]:
    better = join.automatic
    # Wide rows call for their storage whatever the sizes; all else rests on them.
    certain = better.storage == "partial-operand" or (join.sizes_known and (join.bytes or 0) >= WORTH_MOVING)
    if certain and not join.outer and better.storage not in (REMOTE, join.storage):
        yield Advice(
            "other-storage",
            f"store it as {better.storage} instead of {join.storage}",
            better.reasons[-1],
            f"'storage' = '{better.storage}'",
        )


def _one_state_for_many(join: StoringJoin) -> Iterator[Advice]:
    busy = _busy(join.relations)
    if join.level is Level.COMPLETE and join.asked_level is None and busy is not None:
        yield Advice(
            "one-state-for-many",
            "be content with strong, if not every state has to be seen",
            f"what has gathered then becomes one state and is refreshed at once; {busy.source} has had some "
            f"{busy.transactions_per_hour:,.0f} transactions an hour, and each is a state now",
            "'consistency' = 'strong'",
        )


def _every_state(join: StoringJoin) -> Iterator[Advice]:
    if join.level < Level.COMPLETE:
        yield Advice(
            "every-state",
            "request complete, if every state matters",
            "each transaction becomes a state of the view; they are then refreshed one after the other, not at once",
            "'consistency' = 'complete'",
        )


def _key_before_creating(join: StoringJoin) -> Iterator[Advice]:
    for one in join.relations:
        if one.key is None and not join.created and one.key_can_be_declared:
            yield Advice(
                "declare-key",
                f"declare the key of {one.name} before you create the view, if it has one",
                "else its rows get numbers, and for a deletion the number has to be looked up by all columns",
                f"viewkeeper add-source {one.source} URL --key {one.table}=COLUMN",
            )


def _no_job_for_an_expression(join: AskingJoin | StoringJoin) -> Iterator[Advice]:
    if join.only_spark is not None:
        yield Advice(
            "only-spark",
            f"keep the columns of {join.only_spark} in the view, and compute it when the view is read",
            "only Spark evaluates it, so that every change takes a job; all else is done on the driver",
        )


# --- summaries ---


def _refresh_now(summary: SummarizedFacts) -> Iterator[Advice]:
    if summary.manual and summary.waiting:
        yield Advice(
            "refresh-now",
            "refresh it",
            f"{counted(summary.waiting, 'row')} of changes {'waits' if summary.waiting == 1 else 'wait'} for that",
            f"viewkeeper refresh {summary.view}",
        )


def _next_extreme_at_hand(summary: SummarizedFacts) -> Iterator[Advice]:
    recomputed = [extreme.called for extreme in summary.extremes if extreme.recomputed]
    if recomputed:
        yield Advice(
            "extremes-at-hand",
            f"store a hidden table for {listed(recomputed)}",
            "a deleted extreme is then looked up there; now it takes a job over the stored facts. The table has a row "
            "for each value of each group",
            "'minmax' = 'node'",
        )


def _extremes_from_facts(summary: SummarizedFacts) -> Iterator[Advice]:
    facts = summary.fact_rows
    for extreme in summary.extremes:
        kept = not extreme.recomputed and not extreme.called.startswith("COUNT")
        if kept and facts and (extreme.rows or 0) >= max(NEARLY_THE_FACTS * facts, WORTH_LEAVING_OUT):
            yield Advice(
                "extremes-from-facts",
                f"recompute {extreme.called} from the facts, which are stored anyway",
                f"{extreme.node} has {extreme.rows:,} rows beside {facts:,} facts, and would not be needed; a deleted "
                "extreme would then take a job",
                "'minmax' = 'recompute'",
            )


def _less_often(summary: SummarizedFacts) -> Iterator[Advice]:
    rate = summary.transactions_per_hour or 0
    if summary.continuous and summary.level is not Level.COMPLETE and rate > BUSY:
        takes = f", and a refresh takes some {summary.seconds:.2g} s" if summary.seconds is not None else ""
        yield Advice(
            "less-often",
            "refresh it on a clock instead of with every commit, if it may lag behind",
            f"the source of {summary.fact} has had some {rate:,.0f} transactions an hour{takes}; those of five minutes "
            "would be added up first",
            "'refresh' = 'every 5 minutes'",
        )


def _states_of_a_summary(summary: SummarizedFacts) -> Iterator[Advice]:
    each = f", some {summary.seconds:.2g} s each for its tables" if summary.seconds is not None else ""
    if summary.level is Level.COMPLETE:
        yield Advice(
            "once-per-commit",
            "be content with strong, if not every state has to be seen",
            f"it is then refreshed once for all that a commit holds; now once for each transaction{each}",
            "'consistency' = 'strong'",
        )
    elif summary.continuous:
        yield Advice(
            "every-state",
            "request complete, if every state matters",
            f"each transaction becomes a state of it; that takes a refresh for each{each}, not one for each commit",
            "'consistency' = 'complete'",
        )


def _members_that_save_little(summary: SummarizedFacts) -> Iterator[Advice]:
    for one in summary.members:
        if one.rows >= WORTH_LEAVING_OUT and one.rows >= ALMOST_ALL * one.above_rows:
            yield Advice(
                "leave-out",
                f"leave {one.table} out, by GROUPING SETS",
                f"it has {one.rows:,} rows, and {one.above}, from which it is computed, has {one.above_rows:,}: a "
                "query of the facts by its groups is answered from there as well",
            )


def _hierarchy(summary: SummarizedFacts) -> Iterator[Advice]:
    for one in summary.hierarchies:
        by, attribute = one.columns
        source, _, table = one.relation.partition(".")
        yield Advice(
            "hierarchy",
            f"declare that {by} determines {attribute} in {one.relation}, if it does",
            f"the summary-delta of {one.table} would then be computed from that of {one.above}: {one.cost_then:,.0f} "
            f"instead of {one.cost_now:,.0f} rows and joined rows are expected",
            f"viewkeeper add-source {source} URL --hierarchy {table}={by},{attribute}",
        )


OF_ASKING_JOINS: tuple[Rule, ...] = (
    _stronger_algorithm,
    _without_waiting_for_quiet,
    _without_reading_the_view,
    _without_questions,
    _equality,
    _no_job_for_an_expression,
    _deletions_for_nothing,
    _remembered_by_key,
    _index,
)
OF_STORING_JOINS: tuple[Rule, ...] = (
    _no_job_for_an_expression,
    _key_before_creating,
    _other_storage,
    _ask_instead,
    _one_state_for_many,
    _every_state,
)
OF_SUMMARIES: tuple[Rule, ...] = (
    _refresh_now,
    _next_extreme_at_hand,
    _extremes_from_facts,
    _less_often,
    _hierarchy,
    _members_that_save_little,
    _states_of_a_summary,
)


# --- words ---


def _busy(relations: Iterable[JoinedRelation]) -> JoinedRelation | None:
    """The relation whose source has more transactions than asking keeps up with, if there is one."""
    return next((one for one in relations if (one.transactions_per_hour or 0) > BUSY), None)


def _looked_up(join: AskingJoin) -> list[tuple[JoinedRelation, tuple[str, ...]]]:
    """The relations with each way in which they are looked up by columns, each once. Recompute reads them whole."""
    if join.algorithm == "recompute":
        return []
    return list({(one.name, by): (one, by) for one in join.relations for by in one.ways if by}.values())


def _at_present(join: AskingJoin, reason: str) -> str:
    """A reason of `automatic.py`, of what would be if the sources were asked: they are."""
    if join.algorithm == "recompute":
        return "all relations are read again and again"
    return reason.replace(" would be looked up ", " is looked up ").replace("each would bring", "each brings")
