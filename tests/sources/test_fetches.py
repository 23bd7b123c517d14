"""A query answered from what it fetches is the query evaluated at the source.

A database is queried for rows that match shipped keys, and may give more; the rest is done on what comes back.
The simulator's sources answer both ways here, in every scenario, and must agree.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from run_size import some
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.messages import Fetch, Query
from viewkeeper.sim.report import judge
from viewkeeper.sim.run import simulate
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sources.local_queries import LocalSweep
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
    keys = fetch.keys
    if fetch.among is not None:
        # Not generous: what was read for a row that is not wanted itself need not be there.
        keys = tuple(row for row in exactly(fetch.among, contents))
    if keys is not None:
        first = rows.columns.index(fetch.matched[0])
        wanted = {key[0] for key in keys}
        rows = MemoryZSet(rows.columns, [(row, weight) for row, weight in rows.weights() if row[first] in wanted])
    return rows.keep(fetch.columns)


def exactly(fetch: Fetch, contents: Mapping[str, MemoryZSet]) -> set[Any]:
    """The distinct rows of a fetch of one relation, and no other."""
    (operand,) = fetch.operands
    keys = fetch.keys if fetch.among is None else exactly(fetch.among, contents)
    named = [dict(zip(operand.columns, row, strict=True)) for row, _ in contents[operand.relation.name].weights()]
    return {
        tuple(row[column] for column in fetch.columns)
        for row in named
        if tuple(row[column] for column in fetch.matched) in set(keys or ())
    }


@pytest.mark.parametrize("seeds", some([range(12), range(12, 40)], 1))
@pytest.mark.parametrize("algorithm", ["sweep", "batched-sweep", "t-strobe", "c-t-strobe", "recompute", "eca"])
def test_what_is_fetched_suffices(algorithm: str, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def both_ways(self: MemorySource, query: Query) -> Any:
        nonlocal asked
        asked += 1
        expected = query.evaluate(self.contents)
        rows: Sequence[Any] = [fetched(fetch, self.contents) for fetch in query.fetches()]
        answer = query.over(rows)
        if isinstance(query, LocalSweep):
            # What came for the hops beyond is used, and judged by the states of the view.
            assert dict(answer.rows.weights()) == dict(expected.rows.weights())
            return answer
        assert dict(answer.weights()) == dict(expected.weights())
        return expected

    monkeypatch.setattr(MemorySource, "answer", both_ways)
    for seed in seeds:
        run = simulate(scenario := Scenario.varied(algorithm, Transactions.LOCAL, seed))
        report = judge(scenario, run)
        assert report.level >= report.promised, report.command
    assert asked > 2.5 * len(seeds)
