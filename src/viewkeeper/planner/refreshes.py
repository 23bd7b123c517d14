"""What past refreshes of a view took, as the commits tell it.

    a refresh     one commit with new states of the group: from the delivery of its first transaction until its files
                  are written. Waiting for the answers of sources is part of it.
    a summary     the same, of those commits that changed its lattice; propagating and applying are its own part of it
    deferred      one refresh of the lattice: propagating what waited, and applying it.

The views of a group, and the tables of a lattice, are refreshed together: the figures are those of all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.record import REFRESHES, Record
from viewkeeper.planner.summaries.naming import METRICS, SUMMARY
from viewkeeper.sql.refresh_mode import PROPERTY as REFRESH


@dataclass(frozen=True)
class Refreshes:
    """The refreshes of a view in the commits that were looked at."""

    seconds: tuple[float, ...]
    """of each, the oldest first"""
    updates: int
    """transactions, or of a deferred summary changes, that they brought"""
    queries: int | None
    """that were asked for them; None of a deferred summary, whose facts came before"""
    own_seconds: tuple[float, ...] = ()
    """of each refresh of a summary: propagating, and applying to all tables of the lattice"""

    @property
    def typical(self) -> float | None:
        """The median of the seconds."""
        return median(self.seconds) if self.seconds else None

    @property
    def typical_own(self) -> float | None:
        """The same of what is a summary's own part."""
        return median(self.own_seconds) if self.own_seconds else None

    @property
    def queries_per_update(self) -> float | None:
        return None if self.queries is None or not self.updates else self.queries / self.updates


def refreshes_of(view: Definition, records: Sequence[Record]) -> Refreshes:
    """What the commits say of a view; nothing before it was created."""
    records = [record for record in records if record.commit > view.created]
    summary = view.properties.get(SUMMARY)
    if summary and view.properties.get(REFRESH, "continuous") != "continuous":
        return _of_lattice(view.group, records)
    if not summary:
        return _of_group(view.group, records)
    touched = [record for record in records if view.group in record.metrics.get(METRICS, {})]
    own = _of_lattice(view.group, touched).own_seconds
    return replace(_of_group(summary["facts"]["core"], touched), own_seconds=own)


def _of_group(group: str, records: Sequence[Record]) -> Refreshes:
    told = [record.metrics[REFRESHES][group] for record in records if group in record.metrics.get(REFRESHES, {})]
    return Refreshes(
        tuple(one["seconds"] for one in told),
        sum(one["transactions"] for one in told),
        sum(one["queries"] for one in told),
    )


def _of_lattice(lattice: str, records: Sequence[Record]) -> Refreshes:
    told = [record.metrics[METRICS][lattice] for record in records if lattice in record.metrics.get(METRICS, {})]
    # A propagation on its own is no refresh, but its time and its changes belong to the one that comes next.
    seconds: list[float] = []
    waited = 0.0
    for one in told:
        waited += one.get("propagate_seconds", 0.0)
        applied = one.get("refresh_seconds", one.get("recompute_seconds"))
        if applied is not None:
            seconds.append(waited + applied)
            waited = 0.0
    return Refreshes(tuple(seconds), sum(one.get("changes", 0) for one in told), None, tuple(seconds))
