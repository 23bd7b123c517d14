"""Complete consistency of summaries over a source: every transaction is a state, in order, and none is skipped.

contents of the states, equal neighbours once  =  recomputation after each transaction, equal neighbours once
"""

import pytest
from summary_oracle import differences
from summary_schemas import Row
from summary_worlds import World, world

from viewkeeper.lake.log.catalog import families
from viewkeeper.maintenance.contents import read_rows
from viewkeeper.serving.snapshot import Snapshot

COMPLETE = {"consistency": "complete"}


def contents_of_states(one: World, name: str) -> list[list[Row]]:
    """What readers see of each state of a summary, the oldest first."""
    wh = one.warehouse
    last = Snapshot(wh._files, wh._writer.last)
    members = families(last.catalog).get(name) or (last.catalog[name],)
    found = []
    for state in wh.states(name):
        record, _ = last.holding(members[0], state.state, name)
        assert record.groups[members[0].group].last == state.state, "a commit of a complete lattice has one state"
        found.append(one.oracle.shown(*((view, read_rows(wh._files, view, record)) for view in members)))
    return found


def without_repeats(bags: list[list[Row]], rounded: frozenset[int]) -> list[list[Row]]:
    kept = bags[:1]
    for bag in bags[1:]:
        if differences(kept[-1], bag, rounded) is not None:
            kept.append(bag)
    return kept


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_every_transaction_is_a_state(tmp_path, seed):
    with world(tmp_path, seed, sqlite=True) as one:
        one.settings = [COMPLETE]
        one.create()
        (name,) = one.views
        definition, tables = one.views[name], one.schema.tables.values()
        expected = [one.oracle.recomputed(definition, tables, one.model.copy())]
        for _ in range(4):
            states = []
            for _ in range(one.rng.randint(1, 3)):
                states.append(one.model.change())
                expected.append(one.oracle.recomputed(definition, tables, one.model.copy()))
            one.feed.change(one.warehouse, states)
        wanted = without_repeats(expected, definition.rounded)
        found = without_repeats(contents_of_states(one, name), definition.rounded)
        assert len(found) == len(wanted) > 1
        for number, pair in enumerate(zip(wanted, found, strict=True)):
            assert differences(*pair, definition.rounded) is None, (name, number)
