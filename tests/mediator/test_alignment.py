"""The states of several views as one sequence, against the rule itself."""

from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.mediator.alignment import Alignment
from viewkeeper.messages import Transaction, ViewDelta, position

NOTHING = MemoryZSet(("v",))


def transaction(number: int, source: str = "x") -> Transaction:
    return Transaction(source, position(number), ())


def change(*numbers: int, row: object = None) -> ViewDelta:
    delta = NOTHING if row is None else MemoryZSet(("v",), [((row,), 1)])
    return ViewDelta(delta, tuple(transaction(number) for number in numbers))


def reflected(alignment: Alignment) -> list[list[str]]:
    return [[one.position.lstrip("0") for one in state.transactions] for state in alignment.changes()]


def test_one_view_gives_its_changes_as_they_are() -> None:
    alignment = Alignment(["a"])
    alignment.installed("a", [change(1), change(2, 3)])
    assert reflected(alignment) == [["1"], ["2", "3"]]
    assert alignment.changes() == []


def test_views_meet_where_the_last_has_caught_up() -> None:
    alignment = Alignment(["a", "b"])
    alignment.installed("a", [change(1), change(2), change(3)])
    assert alignment.changes() == []
    alignment.installed("b", [change(1, 2)])
    assert reflected(alignment) == [["1", "2"]]
    alignment.installed("b", [change(3)])
    assert reflected(alignment) == [["3"]]


def test_a_view_that_left_is_not_waited_for() -> None:
    alignment = Alignment(["a", "b"])
    alignment.installed("a", [change(1)])
    alignment.leave("b")
    alignment.installed("b", [change(1)])
    assert reflected(alignment) == [["1"]]
    alignment.leave("a")
    assert alignment.changes() == []


def test_what_a_view_says_again_is_not_waited_for() -> None:
    alignment = Alignment(["a", "b"])
    alignment.installed("a", [change(1, 2), change(2)])
    alignment.installed("b", [change(1), change(2)])
    assert reflected(alignment) == [["1", "2"]]
    alignment.installed("a", [change(3)])
    alignment.installed("b", [change(2, 3)])
    assert reflected(alignment) == [["3"]]


def test_a_change_without_news_goes_with_the_next_that_has_some() -> None:
    alignment = Alignment(["a"])
    alignment.installed("a", [change(row="first half")])
    assert alignment.changes() == []
    alignment.installed("a", [change(1, row="second half")])
    (state,) = alignment.changes()
    assert [dict(delta.weights()) for delta in state.deltas["a"]] == [{("first half",): 1}, {("second half",): 1}]
    assert state.vector == {"x": position(1)}


def test_a_view_that_starts_again_may_reflect_again() -> None:
    alignment = Alignment(["a", "b"])
    alignment.installed("a", [change(1), change(2)])
    alignment.start_again("a")
    assert list(alignment.waiting("a")) == []
    alignment.installed("b", [change(1), change(2)])
    alignment.installed("a", [change(1, 2)])
    assert reflected(alignment) == [["1", "2"]]


def test_thousands_of_states_take_a_few_steps_each(counted_places: list[int]) -> None:
    many = 4_000
    alignment = Alignment(["a", "b", "c"])
    alignment.installed("a", [change(number) for number in range(1, many + 1)])
    alignment.installed("b", [change(number) for number in range(1, many + 1)])
    # Asked after every change, as a group does.
    states = 0
    for number in range(1, many + 1):
        alignment.installed("c", [change(number)])
        states += len(alignment.changes())
    assert states == many
    assert len(counted_places) <= 6 * many


def test_one_large_meeting_looks_at_every_change_once(counted_places: list[int]) -> None:
    many = 4_000
    alignment = Alignment(["a", "b"])
    alignment.installed("a", [change(number) for number in range(1, many + 1)])
    alignment.installed("b", [change(*range(1, many + 1))])
    assert len(alignment.changes()) == 1
    assert len(counted_places) == many + 1


# --- against brute force ---


@st.composite
def installed_by_views(draw: st.DrawFn) -> list[list[list[int]]]:
    """For each view the transactions 1, 2, ... cut into changes, as far as it has come; some repeat themselves."""
    total = draw(st.integers(0, 8))
    views = []
    for _ in range(draw(st.integers(1, 3))):
        come = draw(st.integers(0, total))
        cuts = sorted(draw(st.sets(st.integers(1, max(come - 1, 1)), max_size=come))) if come > 1 else []
        bounds = [0, *[cut for cut in cuts if cut < come], come]
        changes = [list(range(low + 1, high + 1)) for low, high in pairwise(bounds)]
        for place in range(1, len(changes)):
            if draw(st.booleans()):
                changes[place] = [changes[place - 1][-1], *changes[place]]
        views.append([one for one in changes if one])
    return views


def brute_force(views: list[list[list[int]]]) -> list[set[int]]:
    """The rule as it stands: of all prefixes that reflect the same set T ≠ ∅, the smallest T; then again."""
    seen: list[set[int]] = [set() for _ in views]
    rest = []
    for number, changes in enumerate(views):
        news = []
        for one in changes:
            news.append(set(one) - seen[number])
            seen[number] |= set(one)
        rest.append(news)
    states = []
    while True:
        meetings = []
        for counts in product(*(range(1, len(changes) + 1) for changes in rest)):
            sets = [set().union(*changes[:count]) for changes, count in zip(rest, counts, strict=True)]
            if sets[0] and all(one == sets[0] for one in sets):
                meetings.append((len(sets[0]), counts, sets[0]))
        if not meetings:
            return states
        _, counts, together = min(meetings)
        states.append(together)
        rest = [changes[count:] for changes, count in zip(rest, counts, strict=True)]


@given(installed_by_views(), st.integers(0, 1_000))
def test_the_meeting_rule_against_brute_force(views: list[list[list[int]]], order: int) -> None:
    alignment = Alignment(str(number) for number in range(len(views)))
    states = []
    waiting = [list(changes) for changes in views]
    # In any order, asked after every change.
    while any(waiting):
        number = [place for place, changes in enumerate(waiting) if changes][order % sum(map(bool, waiting))]
        alignment.installed(str(number), [change(*waiting[number].pop(0))])
        order = order * 31 + 7
        states += [{int(one.position) for one in state.transactions} for state in alignment.changes()]
    assert states == brute_force(views)
