"""A run and what the checker says of it, in both of its modes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from viewkeeper.algorithms.registry import algorithm
from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.checker.judgement import Judgement, Violation
from viewkeeper.levels import Level
from viewkeeper.sim.outcome import Run, ViewRun
from viewkeeper.sim.run import promised_level
from viewkeeper.sim.scenario import Scenario

BLIND_BUDGET = 50_000
"""source states that a blind search looks at; runs that keep their promise need a fraction of it"""


@dataclass(frozen=True)
class ViewJudgement:
    """What the checker says of one view."""

    name: str
    history: History
    claimed: Judgement
    """by the vectors of the run, commit by commit"""
    blind: Judgement
    captured: Judgement | None = None
    """the same transaction by transaction, as captures delivered them, if these merged commits and it is strong"""
    in_group: bool = False
    """whether its states are those of a group, or of captures that merge"""

    @property
    def level(self) -> Level:
        """Taken at the run's own word: its vectors must hold. Between commits that were captured as one there need not
        be a state."""
        return self.captured.level if self.captured else self.claimed.level

    @property
    def reached(self) -> Level:
        """What both ways of judging agree on; where the blind search gave up, the vectors alone decide.

        Blindly a view of a group is judged over its own sources, commit by commit. It need not be complete there: what
        was captured as one, or crosses at a source that only other views read, is one state of the group.
        """
        if self.blind.undecided or (self.in_group and self.blind.level is Level.STRONG):
            return self.level
        return min(self.level, self.blind.level)

    @property
    def violation(self) -> Violation | None:
        return (self.captured or self.claimed).violation


@dataclass(frozen=True)
class Report:
    """One judged run."""

    scenario: Scenario
    run: Run
    views: tuple[ViewJudgement, ...]
    command: str

    @cached_property
    def worst(self) -> ViewJudgement:
        """The view that reached least."""
        return min(self.views, key=lambda one: one.reached)

    @property
    def claimed(self) -> Judgement:
        return self.worst.claimed

    @property
    def blind(self) -> Judgement:
        return self.worst.blind

    @property
    def history(self) -> History:
        return self.worst.history

    @property
    def promised(self) -> Level:
        return promised_level(self.scenario)

    @property
    def level(self) -> Level:
        """What the run reached, taken at its own word."""
        return min(one.level for one in self.views)

    @property
    def reached(self) -> Level:
        return self.worst.reached

    @property
    def undecided(self) -> bool:
        return any(one.blind.undecided for one in self.views)

    @property
    def stalled(self) -> bool:
        """Whether something was delivered and is never shown."""
        return self.run.waiting > 0 and self.promised >= Level.CONVERGENT

    @property
    def kept_promise(self) -> bool:
        return self.reached >= self.promised and not self.stalled

    @property
    def states(self) -> int:
        """The states that were installed, the initial one aside."""
        return len(self.history.states) - 1

    @property
    def queries_per_update(self) -> float:
        return round(self.run.messages.queries / max(1, len(self.history.deliveries)), 3)

    def to_json(self) -> dict[str, Any]:
        scenario, messages = self.scenario, self.run.messages
        return {
            "algorithm": scenario.algorithm,
            "seed": scenario.seed,
            "relations": scenario.relations,
            "sources": scenario.source_count,
            "updates": scenario.updates,
            "transactions": str(scenario.transactions),
            "multi_relation": scenario.multi_relation,
            "mediator": scenario.live,
            "views": scenario.views,
            "merge": scenario.merge,
            "restarts": scenario.restarts,
            "options": {**algorithm(scenario.algorithm).options, **dict(scenario.options)},
            "deliveries": len(self.history.deliveries),
            "messages": {"queries": messages.queries, "answers": messages.answers, "rows": messages.rows},
            "local_queries": self.run.local_queries,
            "queries_per_update": self.queries_per_update,
            "states": self.states,
            "promised": str(self.promised),
            "level": str(self.level),
            "waiting": self.run.waiting,
            "levels": {one.name: str(one.reached) for one in self.views},
            "verdict": self.claimed.to_json()["verdict"],
            "violation": self.worst.violation.to_json() if self.worst.violation else None,
            "blind": {
                "level": str(self.blind.level),
                "verdict": self.blind.to_json()["verdict"],
                "undecided": self.blind.undecided or None,
            },
            "merged_units": len(self.claimed.merged_units),
            "kept_promise": self.kept_promise,
            "command": self.command,
        }

    def verdict_line(self) -> str:
        """`reached complete` or what went wrong, in a sentence."""
        lines = [f"{self.scenario.algorithm} reached {_called(self.level)} (promised: {_called(self.promised)})"]
        if violation := self.worst.violation:
            of = f" of {self.worst.name}" if len(self.views) > 1 else ""
            lines.append(f"  not {violation.level}{of}: {violation.message}")
        if self.stalled:
            lines.append(f"  {self.run.waiting} transactions were delivered and are part of no state")
        return "\n".join(lines)

    def text(self) -> str:
        scenario, messages = self.scenario, self.run.messages
        lines = [
            *(f"view       {one.history.view}" for one in self.views),
            f"updates    {len(self.history.deliveries)} {scenario.transactions} transactions delivered"
            f" from {scenario.source_count} sources",
            f"messages   {messages.queries} queries ({self.queries_per_update} per update),"
            f" {messages.answers} answers, {messages.rows} rows",
            f"states     {self.states}",
            f"level      {self.verdict_line()}",
            f"blind      {'at least ' if self.blind.undecided else ''}{_called(self.blind.level)}"
            + (", commit by commit" if scenario.merge else ""),
            f"repeat     {self.command}",
        ]
        if self.claimed.merged_units:
            crossing = f"merged     {len(self.claimed.merged_units)} groups of global transactions whose orders cross"
            lines.insert(4, f"{crossing}: no serial schedule holds them apart")
        return "\n".join(lines)


def _called(level: Level) -> str:
    return (
        "no level at all" if level is Level.NONE else f"{level} consistency" if level > Level.CONVERGENT else str(level)
    )


def judge(scenario: Scenario, run: Run, command: str | None = None) -> Report:
    """Check every view of a run with the vectors that it claims, and blind."""
    promised = promised_level(scenario)
    return Report(scenario, run, tuple(_judge(view, promised) for view in run.views), command or scenario.command())


def _judge(view: ViewRun, promised: Level) -> ViewJudgement:
    claimed = check(view.history)
    strong = min(claimed.level, promised) >= Level.STRONG
    return ViewJudgement(
        view.name,
        view.history,
        claimed,
        check(view.alone or view.history, blind=True, budget=BLIND_BUDGET),
        check(view.captured()) if view.captured and strong else None,
        in_group=view.alone is not None or view.captured is not None,
    )
