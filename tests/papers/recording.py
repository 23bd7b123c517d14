"""Plays an example and keeps everything that was said, so that a test can compare it with the paper."""

from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.messages import Query, Transaction, ViewDelta
from viewkeeper.sim.examples import EXAMPLES
from viewkeeper.sim.report import Report
from viewkeeper.sim.trace import Observer, describe_query


@dataclass
class Recording(Observer):
    """Queries and answers in order; `said` has everything that the warehouse sent, received and did."""

    queries: list[str] = field(default_factory=list)
    answers: list[MemoryZSet] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    local: list[str] = field(default_factory=list)

    def asked(self, ticket: int, query: Query) -> None:
        self.queries.append(f"{query.source}: {describe_query(query)}")
        self.said.append(f"Q{ticket}")

    def answered(self, source: str, query: Query, rows: Any) -> None:
        self.local.append(f"{source}: {describe_query(query)}")

    def delivered(self, transaction: Transaction) -> None:
        self.said.append(f"{transaction.source}@{int(transaction.position)}")

    def answer_delivered(self, ticket: int, query: Query, rows: Any) -> None:
        self.answers.append(rows)
        self.said.append(f"A{ticket}")

    def installed(self, delta: ViewDelta, number: int, view: Any) -> None:
        self.said.append(f"state {number}")

    def targets(self) -> list[str]:
        """The sources asked, in order."""
        return [query.split(":")[0] for query in self.queries]


def play(name: str) -> tuple[Recording, Report]:
    """Plays an example by name."""
    recording = Recording()
    return recording, EXAMPLES[name].play(lambda line: None, observer=recording)


def states(report: Report) -> list[list[tuple[Any, ...]]]:
    """The installed states as sorted lists of rows, a row as often as it counts."""
    return [
        sorted(row for row, weight in state.rows.weights() for _ in range(weight))
        for state in report.history.states[1:]
    ]


def natural(rows: MemoryZSet, *columns: str) -> dict[tuple[Any, ...], int]:
    """An answer over the columns that the paper shows: a natural join writes the join column once."""
    return dict(rows.keep(columns).weights())
