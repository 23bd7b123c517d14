"""All algorithms under all kinds of transactions: the level promised, the level reached, the messages it took."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algorithms.registry import ALGORITHMS, Algorithm, Transactions
from viewkeeper.levels import Level
from viewkeeper.sim.report import Report, judge
from viewkeeper.sim.run import simulate
from viewkeeper.sim.scenario import Scenario


@dataclass
class Cell:
    """The runs of one algorithm under one kind of transactions."""

    algorithm: Algorithm
    options: tuple[tuple[str, int | bool], ...]
    transactions: Transactions
    levels: list[Level] = field(default_factory=list)
    queries: int = 0
    rows: int = 0
    updates: int = 0
    first_violation: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return " ".join([self.algorithm.name, *(f"{key}={str(value).lower()}" for key, value in self.options)])

    @property
    def promised(self) -> Level | None:
        return self.algorithm.levels.get(self.transactions)

    @property
    def reached(self) -> Level | None:
        """The lowest level of any run: what can be relied on."""
        return min(self.levels, default=None)

    @property
    def below_promise(self) -> int:
        return sum(level < (self.promised or Level.NONE) for level in self.levels)

    def add(self, report: Report) -> None:
        self.levels.append(report.reached)
        self.queries += report.run.messages.queries
        self.rows += report.run.messages.rows
        self.updates += len(report.history.deliveries)
        if self.first_violation is None and report.claimed.violation is not None:
            self.first_violation = {"command": report.command, "message": report.claimed.violation.message}

    def to_json(self) -> dict[str, Any]:
        served = self.promised is not None
        return {
            "algorithm": self.algorithm.name,
            "options": dict(self.options),
            "transactions": str(self.transactions),
            "served": served,
            "baseline": self.algorithm.baseline,
            "needs_keys": self.algorithm.needs_keys,
            "message_cost": self.algorithm.queries,
            "promised": str(self.promised) if served else None,
            "reached": str(self.reached) if served else None,
            "runs": len(self.levels),
            "runs_per_level": {str(level): self.levels.count(level) for level in Level if level in self.levels},
            "below_promise": self.below_promise,
            "queries_per_update": round(self.queries / self.updates, 3) if self.updates else None,
            "rows_per_update": round(self.rows / self.updates, 3) if self.updates else None,
            "first_violation": self.first_violation,
        }


class Matrix:
    """`runs` seeded runs for every cell; the same seeds, and so the same updates, down each column."""

    def __init__(self, *, runs: int, seed: int, relations: int, updates: int, multi_relation: bool = False) -> None:
        self.runs = runs
        self._seed = seed
        self._relations = relations
        self._updates = updates
        self._multi_relation = multi_relation
        self.cells = list(self._cells())

    def _cells(self) -> Iterator[Cell]:
        for algorithm in ALGORITHMS.values():
            if self._multi_relation and not algorithm.over_wrapper:
                continue
            variants: list[tuple[tuple[str, int | bool], ...]] = [()]
            if algorithm.name == "c-strobe":
                variants.append((("grouped", False),))
            for options in variants:
                for transactions in Transactions:
                    yield Cell(algorithm, options, transactions)

    @property
    def total_runs(self) -> int:
        return self.runs * sum(cell.promised is not None for cell in self.cells)

    def run(self, advance: Callable[[], None]) -> None:
        """Fill every cell."""
        for cell in self.cells:
            if cell.promised is None:
                continue
            for number in range(self.runs):
                scenario = Scenario(
                    algorithm=cell.algorithm.name,
                    seed=self._seed + 2 * number,
                    relations=self._relations,
                    updates=self._updates,
                    transactions=cell.transactions,
                    multi_relation=self._multi_relation,
                    options=cell.options,
                )
                cell.add(judge(scenario, simulate(scenario)))
                advance()

    @property
    def kept_promises(self) -> bool:
        return not any(cell.below_promise for cell in self.cells)

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "seed": self._seed,
            "relations": self._relations,
            "updates": self._updates,
            "multi_relation": self._multi_relation,
            "kept_promises": self.kept_promises,
            "cells": [cell.to_json() for cell in self.cells],
        }

    def text(self) -> str:
        lines = [
            f"{'algorithm':26}{'transactions':14}{'promised':12}{'reached':12}{'below':>7}{'queries/update':>16}",
            "-" * 87,
        ]
        for cell in self.cells:
            if cell.promised is None:
                lines.append(f"{cell.name:26}{cell.transactions:14}refused: it serves one source")
                continue
            per_update = cell.queries / cell.updates if cell.updates else 0.0
            caught = sum(level < Level.CONVERGENT for level in cell.levels)
            note = f"   not even convergent in {caught} of {len(cell.levels)}" if caught else ""
            lines.append(
                f"{cell.name:26}{cell.transactions:14}{cell.promised!s:12}{cell.reached!s:12}"
                f"{cell.below_promise:>7}{per_update:>16.2f}{note}"
            )
        lines.append(f"{self.runs} runs each, {self._relations} relations, {self._updates} updates, seed {self._seed}")
        lines.append("promises kept" if self.kept_promises else "A PROMISE WAS BROKEN: see 'below'")
        return "\n".join(lines)
