"""Several relations at one source: the live wrapper turns each change into a change of their join, by one message."""

import threading
from collections.abc import Callable, Mapping

import pytest
from live_memory import LiveMemorySource
from live_shop import MemoryStore

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import Random, seeded
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.known_rows import MOST_KNOWN
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Change, HopQuery
from viewkeeper.sources.local_queries import LocalSweep, together
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation


def relation(name: str, *columns: str) -> Relation:
    return Relation(f"x.{name}", "x", columns, ("BIGINT",) * len(columns), ("id",))


CHAIN = (relation("a", "id", "b"), relation("b", "id", "c"), relation("c", "id", "d"), relation("d", "id", "n"))
"""each names a row of the next by its key"""
ALONG = """SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, d.n AS n FROM x.a
    JOIN x.b ON a.b = b.id JOIN x.c ON b.c = c.id JOIN x.d ON c.d = d.id"""
STAR = "SELECT a.id AS a_id, b.c AS c, d.n AS n FROM x.a JOIN x.b ON a.b = b.id JOIN x.d ON a.b = d.id"


class Chain:
    """A source with the relations of a chain, a view over it, and what was committed."""

    def __init__(self, sql: str, rows: int = 3, most_known: int = 0) -> None:
        self.source = LiveMemorySource("x", *CHAIN)
        for one in CHAIN:
            self.source.commit(*(Change(one.name, (number, number), 1) for number in range(rows)))
        catalog = {one.name: one for one in CHAIN}
        self.view = parse_view(f"CREATE MATERIALIZED VIEW v AS {sql}", catalog)
        self.how = Maintenance(self.view, "sweep")
        self.plan = GroupPlan("v", (self.how,), {"x": self.source.end()}, most_known=most_known)
        self.store = MemoryStore({"v": self.shown(self.source.end())}, [self.plan])

    def shown(self, place: str) -> MemoryZSet:
        return JoinPlan(self.view).evaluate(self.source.at(place))

    def follow(self, *commits: Callable[[], None]) -> int:
        """Commit one after another, each when the view has caught up; the messages that it took."""
        with Mediator({"x": self.source}, [self.plan], MemoryZSet, self.store) as mediator:
            for commit in commits:
                commit()
                mediator.catch_up(settled=True)
            (report,) = (group.report() for group in mediator.groups)
        for vector, contents in self.store.states["v"]:
            assert dict(contents["v"].weights()) == dict(self.shown(vector["x"]).weights()), vector
        return report.messages

    def commit(self, name: str, row: tuple[int, int], count: int) -> Callable[[], None]:
        return lambda: self.source.commit(Change(f"x.{name}", row, count))


@pytest.mark.parametrize(("sql", "name"), [*((ALONG, name) for name in "abcd"), *((STAR, name) for name in "abd")])
def test_a_change_of_any_relation_takes_one_message(name: str, sql: str) -> None:
    chain = Chain(sql)
    assert chain.follow(chain.commit(name, (1, 1), -1), chain.commit(name, (1, 1), 1)) == 2


def test_rows_that_compensation_brings_back_are_asked_for() -> None:
    """b's row is gone when the answer is taken, so nothing was read of c and d for it: they take one more message."""
    chain = Chain(ALONG)
    waiting = [chain.commit("b", (1, 1), -1)]

    def before_reading() -> None:
        if waiting:
            waiting.pop()()

    chain.source.before_reading = before_reading
    assert chain.follow(chain.commit("a", (7, 1), 1)) == 3, "two for a's change, one for b's"
    assert len(chain.store.states["v"]) == 2


def test_what_is_known_by_its_key_is_not_asked_for_again() -> None:
    chain = Chain(ALONG, most_known=MOST_KNOWN)
    assert chain.follow(*(chain.commit("a", (number, 1), 1) for number in (7, 8, 9))) == 1
    chain = Chain(ALONG, most_known=MOST_KNOWN)
    steps = [("a", (7, 1), 1), ("b", (1, 1), -1), ("b", (1, 2), 1), ("a", (8, 1), 1), ("a", (9, 1), 1)]
    # One for a's first row, and one for each change of b, which is joined with a by no key.
    assert chain.follow(*(chain.commit(*step) for step in steps)) == 3


@pytest.mark.parametrize("most_known", [0, MOST_KNOWN])
@pytest.mark.parametrize("sql", [ALONG, STAR])
@pytest.mark.parametrize("seed", range(4))
def test_every_state_is_right_while_the_source_changes_under_each_reading(seed: int, sql: str, most_known: int) -> None:
    random = seeded(seed)
    chain = Chain(sql, most_known=most_known)
    contents: Mapping[str, dict[int, int]] = {one.name: {number: number for number in range(3)} for one in CHAIN}
    left, writing = [None] * 25, threading.Lock()

    def before_reading() -> None:
        with writing:
            if left:
                left.pop()
                change(chain.source, contents, random)

    def several() -> None:
        with writing:
            for _ in range(random.randrange(1, 4)):
                change(chain.source, contents, random)

    chain.source.before_reading = before_reading

    chain.follow(*[several] * 12)
    assert len(chain.store.states["v"]) > 12


def change(source: LiveMemorySource, contents: Mapping[str, dict[int, int]], random: Random) -> None:
    """One transaction: rows are inserted, deleted, moved; keys stay keys."""
    changes = []
    for _ in range(random.randrange(1, 3)):
        name = random.choice(CHAIN).name
        rows = contents[name]
        number, value = random.randrange(4), random.randrange(4)
        if number in rows:
            changes.append(Change(name, (number, rows.pop(number)), -1))
        if random.random() < 0.7:
            rows[number] = value
            changes.append(Change(name, (number, value), 1))
    if changes:
        source.commit(*changes)


def test_a_join_by_columns_of_two_relations_is_not_read_by_one_of_them() -> None:
    """By its tenant alone p would give all rows of that tenant: it goes alone, with both columns."""
    types = ("BIGINT",) * 3
    relations = {
        "s.o": Relation("s.o", "s", ("id", "tenant"), types[:2], ("id",)),
        "s.l": Relation("s.l", "s", ("id", "ord", "item"), types, ("id",)),
        "s.p": Relation("s.p", "s", ("tenant", "item", "price"), types, ("tenant", "item")),
    }
    text = """SELECT o.id AS id, l.item AS item, p.price AS price FROM s.o o
        JOIN s.l l ON l.ord = o.id JOIN s.p p ON p.tenant = o.tenant AND p.item = l.item"""
    plan = JoinPlan(parse_view(text, relations, name="v"))
    (first, _) = plan.path(frozenset({0}))
    delta = plan.start(0, MemoryZSet(("id", "tenant"), [((3, 1), 1)]))
    query = LocalSweep(HopQuery(first, delta), plan)
    assert [fetch.operands[0].alias for fetch in query.fetches()] == ["l"]
    assert together(plan, 0) == (False, False)
