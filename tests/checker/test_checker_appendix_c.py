"""Appendix C of Zhuge et al. (1996) as a second definition of the levels, and the checker held against it.

The appendix sees the states as read-only transactions VT_0, ..., VT_f among the source transactions ST:

    convergent    ST with VT_f is equivalent to a serial schedule that ends with VT_f
    weak          each VT_i is serializable at each source by itself
    strong        ST with all VT is serializable, the VT in their order
    complete      and between any two source transactions there is a VT

`by_appendix_c` tries every serial schedule. It takes the initial state as the VT before all source transactions and
the final one as the VT after them, so "between" covers both ends.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, pairwise, permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st
from random_histories import ROWS, SOURCES, Commit, Content, World, worlds

from run_size import examples
from viewkeeper.checker.judge import check
from viewkeeper.levels import Level

Claim = tuple[Content, dict[str, int]]


def by_appendix_c(world: World, states: list[Content]) -> Level:
    """The level, by brute force."""
    if states[-1] != world.view(world.counts()):
        return Level.NONE
    if not all(any(state == world.view(cut) for cut in cuts(world)) for state in states):
        return Level.CONVERGENT
    level = Level.WEAK
    for schedule in serial_schedules(world):
        views = [world.view(included(schedule[:count])) for count in range(len(schedule) + 1)]
        for places in combinations_with_replacement(range(len(views)), len(states)):
            if all(views[place] == state for place, state in zip(places, states, strict=True)):
                level = Level.STRONG
                if set(places) == set(range(len(views))):
                    return Level.COMPLETE
    return level


def cuts(world: World) -> Iterator[dict[str, int]]:
    """VT_i[x] reads some state of source x, for each x by itself."""
    for counts in product(*(range(count + 1) for count in world.counts().values())):
        yield dict(zip(SOURCES, counts, strict=True))


def serial_schedules(world: World) -> Iterator[tuple[Commit, ...]]:
    """All orders of the transactions, the global ones whole, that have each source's own in the order it did them."""
    order = range(len(world.commits))
    for permuted in permutations(order):
        own = ([place for place in permuted if source in world.commits[place]] for source in SOURCES)
        if all(places == sorted(places) for places in own):
            yield tuple(world.commits[place] for place in permuted)


def included(commits: tuple[Commit, ...]) -> dict[str, int]:
    return {source: sum(source in commit for commit in commits) for source in SOURCES}


@st.composite
def runs(draw: st.DrawFn) -> tuple[World, list[Claim]]:
    """A world and up to five states: along a serial schedule, at any cuts, or not quite right; with claims."""
    world = draw(worlds())
    schedules = list(serial_schedules(world))
    schedule = draw(st.sampled_from(schedules))
    if draw(st.booleans()):
        stops = draw(st.lists(st.integers(0, len(schedule)), max_size=3).map(sorted))
        if draw(st.booleans()):
            stops = list(range(1, len(schedule)))
        chosen = [included(schedule[:stop]) for stop in (0, *stops, len(schedule))]
    else:
        chosen = [included(()), *draw(st.lists(st.sampled_from(list(cuts(world))), max_size=3)), world.counts()]
    states = [(world.view(cut), cut) for cut in chosen]
    if draw(st.sampled_from([False, False, True])):
        broken = draw(st.integers(0, len(states) - 1))
        content, cut = states[broken]
        states[broken] = (content + Counter([draw(st.sampled_from(ROWS))]), cut)
    if draw(st.sampled_from([False, False, False, True])):
        del states[draw(st.integers(0, len(states) - 1))]
    return world, states or [(world.view(world.counts()), world.counts())]


@settings(max_examples=examples(400), deadline=None)
@given(runs())
def test_both_definitions_agree(run: tuple[World, list[Claim]]) -> None:
    world, states = run
    history = world.history(states)
    blind, claimed = check(history, blind=True), check(history)
    assert blind.level is by_appendix_c(world, [content for content, _ in states])
    assert claimed.level <= blind.level


@settings(max_examples=examples(100), deadline=None)
@given(runs())
def test_the_mapping_is_proof(run: tuple[World, list[Claim]]) -> None:
    """Whatever level is reached, the mapping shows it: contents for weak, order for strong, no gaps for complete."""
    world, states = run
    for blind in (False, True):
        judgement = check(world.history(states), blind=blind)
        at = [
            {source: int(place) for source, place in vector.items()}
            for vector in judgement.mapping
            if vector is not None
        ]
        if judgement.level >= Level.WEAK:
            assert [world.view(cut) for cut in at] == [content for content, _ in states]
        if judgement.level >= Level.STRONG:
            assert all(before[s] <= after[s] for before, after in pairwise(at) for s in SOURCES)
        if judgement.level is Level.COMPLETE:
            assert at[0] == dict.fromkeys(SOURCES, 0)
            assert at[-1] == world.counts()
            assert len({tuple(cut.values()) for cut in at}) == len(world.commits) + 1


@settings(max_examples=examples(100), deadline=None)
@given(worlds(), st.data())
def test_true_vectors_are_believed(world: World, data: st.DataObject) -> None:
    """States along a serial schedule with the right vectors: complete if all are there, else strong."""
    schedule = data.draw(st.sampled_from(list(serial_schedules(world))))
    every = [included(schedule[:count]) for count in range(len(schedule) + 1)]
    assert check(world.history([(world.view(cut), cut) for cut in every])).level is Level.COMPLETE
    some = [every[0], *(cut for cut in every[1:-1] if data.draw(st.booleans())), every[-1]]
    assert check(world.history([(world.view(cut), cut) for cut in some])).level >= Level.STRONG
