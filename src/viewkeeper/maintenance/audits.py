"""What an audit finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.zset import Row
from viewkeeper.lake.log.record import GroupState
from viewkeeper.messages import Vector


@dataclass(frozen=True)
class Audit:
    """A view compared with its recomputation, as bags, at the view's own vector."""

    view: str
    state: int
    vector: Vector
    rows: int
    """distinct rows that were compared"""
    missing: tuple[tuple[tuple[Any, ...], int], ...]
    """rows that should be there, with how often"""
    extra: tuple[tuple[tuple[Any, ...], int], ...]
    """rows that should not"""
    structures: tuple[str, ...] = ()
    """of a view that is maintained by what is stored for it: the hidden tables that are not what they should be"""
    below: tuple[str, ...] = ()
    """of a summary of views, which is compared with what these hold: those that are not what their sources give"""
    broken_foreign_keys: tuple[tuple[str, int], ...] = ()
    """of a summary: relations in which facts find no row, though a declared foreign key promises it, with how many; the
    view is right all the same"""

    @property
    def clean(self) -> bool:
        return not (self.missing or self.extra or self.structures or self.below)


def audited(
    view: str, group: GroupState, rows: int, wrong: Sequence[tuple[Row, int]], structures: Sequence[str] = ()
) -> Audit:
    """The audit of a view at the last state of its group, by the rows that are missing (+) and too many (-)."""
    missing = tuple((row, weight) for row, weight in wrong if weight > 0)
    extra = tuple((row, -weight) for row, weight in wrong if weight < 0)
    return Audit(view, group.last, dict(group.vector), rows, missing, extra, tuple(structures))
