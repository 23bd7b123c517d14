"""Every algorithm in one table: what it reaches, what it needs, what it costs.

`prepare` is the one way to an algorithm: it refuses what the algorithm cannot serve, says why, and names what would.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.batched_sweep import batched_sweep
from viewkeeper.algorithms.c_strobe import c_strobe
from viewkeeper.algorithms.c_t_strobe import c_t_strobe
from viewkeeper.algorithms.conventional import conventional
from viewkeeper.algorithms.eca import eca
from viewkeeper.algorithms.eca_key import eca_key
from viewkeeper.algorithms.effects import Process
from viewkeeper.algorithms.g_strobe import g_strobe
from viewkeeper.algorithms.key_information import KeyInformation
from viewkeeper.algorithms.nested_sweep import MOST_UPDATES, nested_sweep
from viewkeeper.algorithms.parallel_pipelined_sweep import parallel_pipelined_sweep
from viewkeeper.algorithms.parallel_sweep import parallel_sweep
from viewkeeper.algorithms.periodic_c_strobe import periodic_c_strobe
from viewkeeper.algorithms.pipelined_sweep import pipelined_sweep
from viewkeeper.algorithms.recompute import recompute
from viewkeeper.algorithms.strobe import strobe
from viewkeeper.algorithms.sweep import sweep
from viewkeeper.algorithms.t_strobe import t_strobe
from viewkeeper.algorithms.update_queue import MakeZSet, UpdateQueue
from viewkeeper.errors import AlgorithmRefused, UsageError, did_you_mean
from viewkeeper.levels import Level
from viewkeeper.sql.view import View


class Transactions(StrEnum):
    """What the sources commit at once."""

    SINGLE = "single"
    LOCAL = "local"
    GLOBAL = "global"


@dataclass(frozen=True)
class Algorithm:
    """One row of the table.

    `levels` has the level promised per kind of transactions; a kind that is missing is refused. The others that are
    lower than the first are there to be seen failing: they say what is left when transactions are larger than what
    the algorithm was made for.
    """

    name: str
    start: Callable[..., Process]
    levels: Mapping[Transactions, Level]
    queries: str
    needs_keys: bool = False
    one_source: bool = False
    knows_transactions: bool = True
    """if not, it takes transactions apart into their actions"""
    needs_quiet: bool = False
    """it installs only when no query is out: never, under a stream of updates without a pause"""
    needs_pause: bool = False
    """a state waits until what interferes pauses, or until it holds as many updates as it may"""
    whole_global_transactions: bool = False
    over_wrapper: bool = True
    baseline: bool = False
    """it is here to be seen failing"""
    out_of_order: Level = Level.NONE
    """what is left when answers overtake updates or are overtaken by them"""
    options: Mapping[str, int | bool] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    """the largest value of an option, where there is one"""

    def stored_view(self, view: View) -> View:
        """The view as the algorithm keeps it: with hidden keys, if it works on keys."""
        return view.with_keys if self.needs_keys else view


SINGLE_IS_ENOUGH = (
    ", or declare that each transaction of its sources is a single update: add-source --transactions single"
)

S, L, G = Transactions.SINGLE, Transactions.LOCAL, Transactions.GLOBAL


def _levels(single: Level, local: Level, over_sources: Level | None) -> dict[Transactions, Level]:
    levels = {S: single, L: local}
    return levels if over_sources is None else {**levels, G: over_sources}


_SWEEPS = _levels(Level.COMPLETE, Level.COMPLETE, Level.WEAK)

ALGORITHMS: Mapping[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            "conventional",
            conventional,
            _levels(Level.NONE, Level.NONE, Level.NONE),
            "n-1 per insertion, 0 per deletion",
            needs_keys=True,
            baseline=True,
        ),
        Algorithm(
            "recompute",
            recompute,
            _levels(Level.CONVERGENT, Level.CONVERGENT, Level.CONVERGENT),
            "n per round, whole relations as answers",
            out_of_order=Level.CONVERGENT,
        ),
        Algorithm(
            "eca",
            eca,
            _levels(Level.STRONG, Level.STRONG, None),
            "1 per update, its size growing with the interfering updates",
            one_source=True,
            needs_quiet=True,
            over_wrapper=False,
            options={"share": False},
        ),
        Algorithm(
            "eca-key",
            eca_key,
            _levels(Level.NONE, Level.NONE, None),
            "1 per insertion, 0 per deletion",
            needs_keys=True,
            one_source=True,
            needs_quiet=True,
            over_wrapper=False,
            baseline=True,
        ),
        Algorithm(
            "strobe",
            strobe,
            _levels(Level.STRONG, Level.CONVERGENT, Level.CONVERGENT),
            "n-1 per insertion, 0 per deletion",
            knows_transactions=False,
            needs_keys=True,
            needs_quiet=True,
            over_wrapper=False,
            out_of_order=Level.CONVERGENT,
        ),
        Algorithm(
            "t-strobe",
            t_strobe,
            _levels(Level.STRONG, Level.STRONG, Level.WEAK),
            "n-1 per relation that the transaction inserts into",
            needs_keys=True,
            needs_quiet=True,
            out_of_order=Level.CONVERGENT,
        ),
        Algorithm(
            "g-strobe",
            g_strobe,
            _levels(Level.STRONG, Level.STRONG, Level.STRONG),
            "as t-strobe; waits for whole transactions",
            needs_keys=True,
            needs_quiet=True,
            out_of_order=Level.CONVERGENT,
        ),
        Algorithm(
            "c-strobe",
            c_strobe,
            _levels(Level.COMPLETE, Level.CONVERGENT, Level.CONVERGENT),
            "n-1 per insertion, 0 per deletion, and up to Σ (n-1)!/(n-1-k)! compensating ones",
            knows_transactions=False,
            needs_keys=True,
            over_wrapper=False,
            out_of_order=Level.CONVERGENT,
            options={"grouped": True},
        ),
        Algorithm(
            "c-t-strobe",
            c_t_strobe,
            _levels(Level.COMPLETE, Level.COMPLETE, Level.WEAK),
            "as c-strobe, per relation that the transaction inserts into",
            needs_keys=True,
            out_of_order=Level.CONVERGENT,
            options={"grouped": True},
        ),
        Algorithm(
            "periodic-c-strobe",
            periodic_c_strobe,
            _levels(Level.STRONG, Level.STRONG, Level.WEAK),
            "between t-strobe and c-t-strobe",
            needs_keys=True,
            out_of_order=Level.CONVERGENT,
            options={"period": 8, "interval": 0, "grouped": True},
        ),
        Algorithm("sweep", sweep, _SWEEPS, "at most n-1 per update"),
        Algorithm("parallel-sweep", parallel_sweep, _SWEEPS, "at most n-1 per update, both sides at once"),
        Algorithm(
            "pipelined-sweep",
            pipelined_sweep,
            _SWEEPS,
            "at most n-1 per update, several in flight",
            options={"window": 64},
        ),
        Algorithm(
            "parallel-pipelined-sweep",
            parallel_pipelined_sweep,
            _SWEEPS,
            "at most n-1 per update, both sides at once, several in flight",
            options={"window": 64},
        ),
        Algorithm(
            "nested-sweep",
            nested_sweep,
            _levels(Level.STRONG, Level.STRONG, Level.WEAK),
            "at most n-1 per update, amortized",
            needs_pause=True,
            options={"updates": 64},
            most={"updates": MOST_UPDATES},
        ),
        Algorithm(
            "batched-sweep",
            batched_sweep,
            _levels(Level.COMPLETE, Level.COMPLETE, Level.COMPLETE),
            "at most n(n-1) per batch of any size",
            whole_global_transactions=True,
            options={"batch": 64},
        ),
    )
}


def algorithm(name: str) -> Algorithm:
    """The algorithm of that name."""
    try:
        return ALGORITHMS[name]
    except KeyError:
        hint = f"{did_you_mean(name, ALGORITHMS)}choose one of {', '.join(ALGORITHMS)}"
        raise UsageError(f"there is no algorithm {name!r}", hint) from None


def prepare(
    name: str,
    view: View,
    transactions: Transactions,
    *,
    level: Level | None = None,
    least: Level = Level.NONE,
    wrapped: bool = False,
    options: Mapping[str, int | bool] | None = None,
    make_zset: MakeZSet = MemoryZSet,
    sources: tuple[str, ...] | None = None,
) -> tuple[JoinPlan, UpdateQueue, Process]:
    """A ready algorithm for a view, its queue and the plan of the view as it is stored; or AlgorithmRefused.

    `wrapped` says that the relations of the view are local views of the multi-relation wrapper. `level` is what the
    user asks for: without it the algorithm is taken at what it promises for these transactions, if that is not below
    `least`. `sources` are those whose transactions will be delivered, by default the view's own.
    """
    chosen = algorithm(name)
    _refuse_unfit(chosen, view, transactions, level, least, wrapped)
    unknown = sorted(set(options or {}) - set(chosen.options))
    if unknown:
        known = ", ".join(chosen.options) or "none"
        raise UsageError(f"{name} has no option {', '.join(unknown)}", f"the options of {name} are: {known}")
    for option, value in (options or {}).items():
        if isinstance(chosen.options[option], bool):
            continue
        most = chosen.most.get(option, value)
        least_value = min(chosen.options[option], 1)
        if not least_value <= value <= most:
            allowed = f"from {least_value} to {most:,}" if option in chosen.most else f"at least {least_value}"
            raise UsageError(
                f"{option}={value} of {name} must be {allowed}", f"the default is {chosen.options[option]}"
            )
    plan = JoinPlan(chosen.stored_view(view))
    queue = UpdateQueue(
        plan.view, whole_global_transactions=chosen.whole_global_transactions, make_zset=make_zset, sources=sources
    )
    settings = {**chosen.options, **(options or {})}
    if not chosen.knows_transactions:
        settings["apart"] = transactions is not Transactions.SINGLE
    return plan, queue, chosen.start(plan, queue, **settings)


def key_information(
    name: str, plan: JoinPlan, transactions: Transactions, make_zset: MakeZSet = MemoryZSet
) -> KeyInformation | None:
    """What the view answers by itself, for an algorithm that holds it, with keys, exactly as of a state of the sources.

    `plan` is that of the stored view.
    """
    chosen = algorithm(name)
    exact = chosen.needs_keys and chosen.levels.get(transactions, Level.NONE) >= Level.STRONG
    return KeyInformation(plan.view, make_zset) if exact else None


def _refuse_unfit(
    chosen: Algorithm, view: View, transactions: Transactions, level: Level | None, least: Level, wrapped: bool
) -> None:
    def fits(other: Algorithm) -> bool:
        return (
            not (other.needs_keys and view.keyless)
            and not (other.one_source and len(view.sources) > 1)
            and not (wrapped and not other.over_wrapper)
        )

    def refuse(reason: str, other_way: str = "") -> AlgorithmRefused:
        names = serving(transactions, level, fits)
        hint = f"use {' or '.join(names)}" if names else "no algorithm does"
        return AlgorithmRefused(f"{chosen.name} cannot maintain {view.name}: {reason}", hint + other_way)

    if chosen.needs_keys and view.keyless:
        raise refuse(
            f"it works on keys, and no key is declared for {', '.join(view.keyless)}",
            ", or declare the key at the source",
        )
    if chosen.one_source and len(view.sources) > 1:
        raise refuse(f"it asks one source for everything, and the relations are at {', '.join(view.sources)}")
    if wrapped and not chosen.over_wrapper:
        raise refuse(
            "it needs the relations themselves at its one source, not local views"
            if chosen.one_source
            else "it takes one tuple action at a time, and an update of a relation becomes several rows of a local view"
        )
    if transactions not in chosen.levels:
        raise refuse(f"it does not serve {transactions} transactions: they span sources")
    reached, needed = chosen.levels[transactions], least if level is None else level
    if reached < needed:
        missing = f", and less than {least} must be requested" if level is None else f", not {level}"
        raise refuse(
            f"it reaches {_in_words(reached)} for {transactions} transactions{missing}",
            (f", or accept it: 'consistency' = '{reached}'" if level is None else "")
            + (SINGLE_IS_ENOUGH if transactions is Transactions.LOCAL and chosen.levels[S] >= needed else ""),
        )


def _in_words(level: Level) -> str:
    return "no level of consistency" if level is Level.NONE else f"{level} consistency"


def serving(
    transactions: Transactions, level: Level | None, fits: Callable[[Algorithm], bool] = lambda _: True
) -> list[str]:
    """The algorithms that are made for a kind of transactions and reach a level, best first."""
    candidates = [
        algorithm
        for algorithm in ALGORITHMS.values()
        if not algorithm.baseline
        and algorithm.levels.get(transactions, Level.NONE) >= (level or Level.STRONG)
        and fits(algorithm)
    ]
    return [algorithm.name for algorithm in sorted(candidates, key=lambda one: -one.levels[transactions])]
