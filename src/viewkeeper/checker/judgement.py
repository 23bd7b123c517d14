"""Verdicts as data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from viewkeeper.algebra.zset import Row
from viewkeeper.checker.history import rows_json
from viewkeeper.levels import Level
from viewkeeper.messages import Transaction, Vector

LEVELS = (Level.CONVERGENT, Level.WEAK, Level.STRONG, Level.COMPLETE)


class Mode(StrEnum):
    """How the states were matched to source states."""

    CLAIMED = "claimed"
    BLIND = "blind"


class Reason(StrEnum):
    """Why a level is not reached."""

    NOT_CONVERGED = "not-converged"
    NO_SOURCE_STATE = "no-source-state"
    UNKNOWN_POSITION = "unknown-position"
    WRONG_CLAIM = "wrong-claim"
    SPLIT_GLOBAL_TRANSACTION = "split-global-transaction"
    INCOMPLETE_GLOBAL_TRANSACTION = "incomplete-global-transaction"
    ORDER = "order"
    SKIPPED_SOURCE_STATE = "skipped-source-state"


@dataclass(frozen=True)
class Violation:
    """The first state that breaks a level, and why.

    `missing` and `extra` are the rows (with counts) by which the state differs from the view over `source_state`;
    `transactions` are those that the reason is about.
    """

    level: Level
    state: int
    reason: Reason
    message: str
    source_state: Vector | None = None
    missing: tuple[tuple[Row, int], ...] = ()
    extra: tuple[tuple[Row, int], ...] = ()
    transactions: tuple[Transaction, ...] = ()

    def at(self, level: Level) -> "Violation":
        """The same violation for a higher level, which includes this one."""
        return replace(self, level=level)

    def to_json(self) -> dict[str, Any]:
        return {
            "level": str(self.level),
            "state": self.state,
            "reason": str(self.reason),
            "message": self.message,
            "source_state": None if self.source_state is None else dict(self.source_state),
            "rows": {"missing": rows_json(self.missing), "extra": rows_json(self.extra)},
            "transactions": [transaction_json(transaction) for transaction in self.transactions],
        }


@dataclass(frozen=True)
class Judgement:
    """What a history reaches.

    `verdict` has True, False or None (undecided, and `undecided` says why) for each level. `mapping` has, for the level
    that is reached, the source state that each state was matched to, None where that level asks for none. `violations`
    has one entry per level that fails. `merged_units` are the transactions that no serial schedule holds apart.
    """

    level: Level
    verdict: Mapping[Level, bool | None]
    mode: Mode
    mapping: tuple[Vector | None, ...]
    violations: tuple[Violation, ...] = ()
    merged_units: tuple[tuple[Transaction, ...], ...] = ()
    undecided: str = ""

    @property
    def violation(self) -> Violation | None:
        """The violation of the lowest level that fails."""
        return self.violations[0] if self.violations else None

    def to_json(self) -> dict[str, Any]:
        return {
            "level": str(self.level),
            "verdict": {str(level): holds for level, holds in self.verdict.items()},
            "violation": self.violation.to_json() if self.violation else None,
            "violations": [violation.to_json() for violation in self.violations],
            "mode": str(self.mode),
            "mapping": [None if vector is None else dict(vector) for vector in self.mapping],
            "merged_units": [[transaction_json(member) for member in unit] for unit in self.merged_units],
            "undecided": self.undecided or None,
        }


def transaction_json(transaction: Transaction) -> dict[str, Any]:
    """What identifies a transaction."""
    return {
        "source": transaction.source,
        "position": transaction.position,
        "global_ids": list(transaction.global_ids),
    }
