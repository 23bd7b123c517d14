"""Random small worlds: two sources with a relation each, and what was committed in which serial order."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.history import History, State
from viewkeeper.messages import Change, GlobalPart, Transaction, position
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation

SOURCES = ("x", "y")
RELATIONS = {
    "x.r1": Relation("x.r1", "x", ("a", "b"), ("BIGINT", "BIGINT")),
    "y.r2": Relation("y.r2", "y", ("b", "c"), ("BIGINT", "BIGINT")),
}
VIEW = parse_view("SELECT r1.a, r2.c FROM x.r1 JOIN y.r2 ON r1.b = r2.b", RELATIONS)
ROWS = tuple(product((0, 1), repeat=2))

Content = Counter[Row]
Actions = tuple[tuple[Row, int], ...]
Commit = dict[str, Actions]
"""What one transaction does at each source that takes part in it."""


@dataclass(frozen=True)
class World:
    """Initial contents, and the transactions in the serial order in which they were committed."""

    initial: dict[str, Content]
    commits: tuple[Commit, ...]
    deliveries: tuple[Transaction, ...]

    def view(self, included: dict[str, int]) -> Content:
        """V when the first so many transactions of each source are included: nested loops, and no engine."""
        now = {source: self.initial[source].copy() for source in SOURCES}
        for source in SOURCES:
            own = [commit[source] for commit in self.commits if source in commit]
            for row, count in (action for actions in own[: included[source]] for action in actions):
                now[source][row] += count
        joined: Content = Counter()
        for (a, b), left in now["x"].items():
            for (other, c), right in now["y"].items():
                if b == other:
                    joined[a, c] += left * right
        return +joined

    def counts(self) -> dict[str, int]:
        """How many transactions each source has."""
        return {source: sum(source in commit for commit in self.commits) for source in SOURCES}

    def history(self, states: Sequence[tuple[Content, dict[str, int] | None]]) -> History:
        """This world with the states that a warehouse showed, and the cuts that it claims for them."""
        rows = {
            name: MemoryZSet(relation.columns, self.initial[relation.source].items())
            for name, relation in RELATIONS.items()
        }
        return History.of(
            VIEW,
            rows,
            self.deliveries,
            [
                State(
                    MemoryZSet(VIEW.columns, content.items()),
                    None if cut is None else {source: position(count) for source, count in cut.items()},
                )
                for content, cut in states
            ],
        )


@st.composite
def worlds(draw: st.DrawFn, commits: int = 4) -> World:
    """Worlds of up to so many transactions, about a quarter of them global, delivered in some order."""
    contents = {source: Counter(draw(st.lists(st.sampled_from(ROWS), max_size=3))) for source in SOURCES}
    initial = {source: content.copy() for source, content in contents.items()}
    done: list[Commit] = []
    for _ in range(draw(st.integers(0, commits))):
        taking_part = draw(st.sampled_from([("x",), ("y",), ("x",), ("y",), SOURCES]))
        done.append({source: draw(_actions(contents[source])) for source in taking_part})
    return World(initial, tuple(done), draw(_deliveries(done)))


@st.composite
def _actions(draw: st.DrawFn, content: Content) -> Actions:
    actions = []
    for _ in range(draw(st.integers(1, 2))):
        row = draw(st.sampled_from(ROWS))
        count = -1 if content[row] and draw(st.booleans()) else 1
        content[row] += count
        actions.append((row, count))
    return tuple(actions)


@st.composite
def _deliveries(draw: st.DrawFn, commits: list[Commit]) -> tuple[Transaction, ...]:
    waiting: dict[str, list[Transaction]] = {source: [] for source in SOURCES}
    for number, commit in enumerate(commits):
        for source, actions in commit.items():
            relation = "x.r1" if source == "x" else "y.r2"
            waiting[source].append(
                Transaction(
                    source,
                    position(len(waiting[source]) + 1),
                    tuple(Change(relation, row, count) for row, count in actions),
                    (GlobalPart(f"T{number}", tuple(commit)),) if len(commit) > 1 else (),
                )
            )
    delivered = []
    while any(waiting.values()):
        source = draw(st.sampled_from([source for source in SOURCES if waiting[source]]))
        delivered.append(waiting[source].pop(0))
    return tuple(delivered)
