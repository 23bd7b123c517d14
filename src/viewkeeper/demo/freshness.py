"""How long a commit of a database took to be in the views.

    lag of a transaction in a group  =  time of the first commit with its position  -  time of its commit at the source

The group of the joins has a state for each transaction, so the k-th position that a source takes there is the position
of its k-th transaction. Both clocks are that of this machine.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from viewkeeper.lake.log.record import Record


def lags(
    records: Sequence[Record], committed: Mapping[str, Sequence[datetime]], complete: str
) -> dict[str, list[float]]:
    """For each group the seconds that each transaction took, in no order.

    `records` are the commits since the writers began, `committed` says when each transaction of a source was committed,
    and `complete` is a group with a state for each of them. Where a source has not as many positions there as it made
    transactions, they cannot be distinguished, and it is left out.
    """
    positions: dict[str, list[str]] = {source: [] for source in committed}
    for record in records:
        if complete in record.groups:
            for step in record.groups[complete].steps:
                for source in positions.keys() & step.keys():
                    positions[source].append(step[source])
    made = {
        source: list(zip(places, committed[source], strict=True))
        for source, places in positions.items()
        if len(places) == len(committed[source])
    }
    found: dict[str, list[float]] = {}
    for group in dict.fromkeys(name for record in records for name in record.groups):
        found[group] = [lag for source in made for lag in _of_source(records, group, source, made[source])]
    return found


def _of_source(records: Sequence[Record], group: str, source: str, made: Sequence[tuple[str, datetime]]) -> list[float]:
    """Positions only grow, so one walk through the commits is enough."""
    found: list[float] = []
    for record in records:
        state = record.groups.get(group)
        if state is None or source not in state.vector:
            continue
        here = datetime.fromisoformat(record.time)
        while len(found) < len(made) and made[len(found)][0] <= state.vector[source]:
            found.append((here - made[len(found)][1]).total_seconds())
    return found
