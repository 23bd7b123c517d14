"""What past refreshes of a lattice taught: how large each summary-delta gets, and what a change costs.

It is kept with the group of the lattice, in its commits, so that it is as durable as what it is about.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.summary.plan import CHANGES, Expected

LEARNED = "learned"
WEIGHT_OF_NEWS = 0.3
"""how much of an average the last refresh makes"""
USUAL_CHANGES = 10_000.0
"""changes that are expected before any have come"""
FEWEST = 1.0


@dataclass(frozen=True)
class Learned:
    """Averages over past refreshes."""

    refreshes: int = 0
    rows: Mapping[str, float] = field(default_factory=dict)
    """of each summary-delta, and of the changes"""
    propagate: float = 0.0
    """seconds"""
    refresh: float = 0.0
    recompute: float | None = None
    """seconds that computing all tables from the fact took, when that was last done"""

    @classmethod
    def of(cls, resume: Mapping[str, Any]) -> "Learned":
        told = resume.get(LEARNED)
        return cls(**told) if told else cls()

    def as_json(self) -> dict[str, Any]:
        return {
            LEARNED: {
                "refreshes": self.refreshes,
                "rows": {name: round(rows, 1) for name, rows in self.rows.items()},
                "propagate": round(self.propagate, 4),
                "refresh": round(self.refresh, 4),
                "recompute": self.recompute,
            }
        }

    def after(self, changes: int, rows: Mapping[str, int], propagate: float, refresh: float) -> "Learned":
        """With one more refresh."""
        if not changes:
            return self
        seen = {CHANGES: changes, **rows}
        return replace(
            self,
            refreshes=self.refreshes + 1,
            rows={**self.rows, **{name: self._average(self.rows.get(name), new) for name, new in seen.items()}},
            propagate=self._average(self.propagate if self.refreshes else None, propagate),
            refresh=self._average(self.refresh if self.refreshes else None, refresh),
        )

    def recomputed(self, seconds: float) -> "Learned":
        """With what computing all tables took."""
        return replace(self, recompute=seconds)

    @staticmethod
    def _average(before: float | None, new: float) -> float:
        return new if before is None else before + WEIGHT_OF_NEWS * (new - before)

    def expected(self, sizes: Mapping[str, int]) -> Expected:
        """How many rows each summary-delta will have: as many as it had, or at most one per change and per group."""
        changes = self.rows.get(CHANGES, USUAL_CHANGES)

        def rows(name: str) -> float:
            if name == CHANGES:
                return changes
            return max(self.rows.get(name, min(changes, sizes.get(name, changes))), FEWEST)

        return rows

    def incremental(self, changes: int) -> float | None:
        """Seconds that a refresh of so many changes should take; None if there was none to learn from."""
        if not self.refreshes:
            return None
        usual = max(self.rows.get(CHANGES, FEWEST), FEWEST)
        return (self.propagate + self.refresh) * max(changes / usual, 1.0)
