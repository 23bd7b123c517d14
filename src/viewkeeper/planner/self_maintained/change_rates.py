"""How often sources change, as far as the commit log knows: the transactions that groups have followed, per hour.

rate  =  states that moved the source, in the commits after the first  /  hours between the first and the last
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.record import Record

LOOKED_AT = 200
"""commits, the newest"""
SHORTEST = 60.0
"""seconds: a shorter time says nothing about an hour"""


def recent(log: CommitLog) -> list[Record]:
    """The newest commits, oldest first."""
    last = log.last().commit
    return [log.record(number) for number in log.numbers()[-LOOKED_AT:] if number <= last]


def transactions_per_hour(records: Sequence[Record]) -> dict[str, float]:
    """For each source that some group has followed long enough; of several groups the one that saw most."""
    rates: dict[str, float] = {}
    for group in {name for record in records for name in record.groups}:
        following = [record for record in records if group in record.groups]
        if len(following) < 2:
            continue
        seconds = (_time(following[-1]) - _time(following[0])).total_seconds()
        if seconds < SHORTEST:
            continue
        moved = dict.fromkeys(following[0].groups[group].vector, 0)
        for before, after in pairwise(following):
            for step in after.groups[group].steps:
                for source in step.keys() & before.groups[group].vector.keys():
                    moved[source] = moved.get(source, 0) + 1
        for source, number in moved.items():
            rates[source] = max(rates.get(source, 0.0), number * 3600 / seconds)
    return rates


def _time(record: Record) -> datetime:
    return datetime.fromisoformat(record.time)
