"""A run and what the checker says of it, in both of its modes."""

from dataclasses import dataclass
from typing import Any

from viewkeeper.algorithms.registry import algorithm
from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.checker.judgement import Judgement
from viewkeeper.levels import Level
from viewkeeper.sim.run import Run, promised_level
from viewkeeper.sim.scenario import Scenario

BLIND_BUDGET = 50_000
"""source states that a blind search looks at; runs that keep their promise need a fraction of it"""


@dataclass(frozen=True)
class Report:
    """One judged run."""

    scenario: Scenario
    run: Run
    claimed: Judgement
    blind: Judgement
    command: str

    @property
    def history(self) -> History:
        return self.run.history

    @property
    def promised(self) -> Level:
        return promised_level(self.scenario)

    @property
    def level(self) -> Level:
        """What the run reached, taken at its own word: its vectors must hold."""
        return self.claimed.level

    @property
    def reached(self) -> Level:
        """What both ways of judging agree on; where the blind search gave up, the vectors alone decide."""
        return self.claimed.level if self.blind.undecided else min(self.claimed.level, self.blind.level)

    @property
    def kept_promise(self) -> bool:
        return self.claimed.level >= self.promised and (self.blind.level >= self.promised or bool(self.blind.undecided))

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
            "options": {**algorithm(scenario.algorithm).options, **dict(scenario.options)},
            "deliveries": len(self.history.deliveries),
            "messages": {"queries": messages.queries, "answers": messages.answers, "rows": messages.rows},
            "local_queries": self.run.local_queries,
            "queries_per_update": self.queries_per_update,
            "states": self.states,
            "promised": str(self.promised),
            "level": str(self.level),
            "verdict": self.claimed.to_json()["verdict"],
            "violation": self.claimed.violation.to_json() if self.claimed.violation else None,
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
        violation = self.claimed.violation
        line = f"{self.scenario.algorithm} reached {_called(self.level)} (promised: {_called(self.promised)})"
        return f"{line}\n  not {violation.level}: {violation.message}" if violation else line

    def text(self) -> str:
        scenario, messages = self.scenario, self.run.messages
        lines = [
            f"view       {self.history.view}",
            f"updates    {len(self.history.deliveries)} {scenario.transactions} transactions delivered"
            f" from {scenario.source_count} sources",
            f"messages   {messages.queries} queries ({self.queries_per_update} per update),"
            f" {messages.answers} answers, {messages.rows} rows",
            f"states     {self.states}",
            f"level      {self.verdict_line()}",
            f"blind      {'at least ' if self.blind.undecided else ''}{_called(self.blind.level)}",
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
    """Check a run with the vectors that it claims, and blind."""
    return Report(
        scenario,
        run,
        check(run.history),
        check(run.history, blind=True, budget=BLIND_BUDGET),
        command or scenario.command(),
    )
