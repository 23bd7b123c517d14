"""A query answered from what it fetches is the query evaluated at the source.

A database is asked for rows that match shipped keys, and may give more than that; the rest is done on what comes back.
The simulator's sources answer both ways here, in every scenario, and must agree.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.messages import Fetch, Query
from viewkeeper.sim.run import simulate
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sources.memory import MemorySource


def fetched(fetch: Fetch, contents: Mapping[str, MemoryZSet]) -> MemoryZSet:
    """What a database with a generous equality gives: only the first key column is matched, and the first equality."""
    rows = MemoryZSet((), [((), 1)])
    for operand in fetch.operands:
        named = contents[operand.relation.name].rename(operand.columns)
        on = tuple(
            (a, b) if b in operand.columns else (b, a)
            for a, b in fetch.equal[:1]
            if {a, b} & set(operand.columns) and {a, b} & set(rows.columns)
        )
        rows = rows.join(named, on, (), rows.columns + named.columns)
    if fetch.keys is not None:
        first = rows.columns.index(fetch.matched[0])
        wanted = {key[0] for key in fetch.keys}
        rows = MemoryZSet(rows.columns, [(row, weight) for row, weight in rows.weights() if row[first] in wanted])
    return rows.keep(fetch.columns)


@pytest.mark.parametrize("algorithm", ["sweep", "batched-sweep", "t-strobe", "c-t-strobe", "recompute", "eca"])
def test_what_is_fetched_suffices(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def both_ways(self: MemorySource, query: Query) -> Any:
        nonlocal asked
        asked += 1
        expected = query.evaluate(self.contents)
        rows: Sequence[Any] = [fetched(fetch, self.contents) for fetch in query.fetches()]
        assert dict(query.over(rows).weights()) == dict(expected.weights())
        return expected

    monkeypatch.setattr(MemorySource, "answer", both_ways)
    for seed in range(40):
        simulate(Scenario.varied(algorithm, Transactions.LOCAL, seed))
    assert asked > 100
