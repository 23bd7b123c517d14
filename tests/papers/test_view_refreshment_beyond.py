"""The example of the view refreshment paper carried on with deletions and updates, in all five storages.

The contents at each moment are in `refreshment_history.HISTORY`, by hand. Here every storage is brought there in three
ways: step by step, in one batch from the beginning, and back again.
"""

from itertools import pairwise

import pytest
from refreshment_history import HISTORY
from refreshment_paper import STRUCTURES, Example, Moment

by_storage = pytest.mark.parametrize("storage", STRUCTURES)


def check(example: Example, moment: Moment) -> None:
    assert example.view == moment.shown(), f"the view: {moment.what}"
    for table, rows in example.stored().items():
        assert rows == moment.stored(example.name)[table], f"{table}: {moment.what}"


@pytest.mark.parametrize("number", range(2, len(HISTORY)), ids=lambda number: HISTORY[number].what.replace(" ", "_"))
@by_storage
def test_one_moment_from_the_one_before(storage: str, number: int) -> None:
    example = Example(storage).go_to(HISTORY[number - 1])
    check(example.go_to(HISTORY[number]), HISTORY[number])


@by_storage
def test_moment_after_moment(storage: str) -> None:
    example = Example(storage)
    for moment in HISTORY:
        check(example.go_to(moment), moment)


@by_storage
def test_many_steps_in_one_batch(storage: str) -> None:
    """What happens in between, and is undone, leaves no trace."""
    for number, moment in enumerate(HISTORY[2:], 2):
        for earlier in HISTORY[:number]:
            check(Example(storage).go_to(earlier).go_to(moment), moment)


@by_storage
def test_back_to_where_it_began(storage: str) -> None:
    """Each step undone, last first: insertions become deletions, and the other way round."""
    example = Example(storage).go_to(HISTORY[-1])
    for moment in reversed(HISTORY[:-1]):
        check(example.go_to(moment), moment)
    nothing = Moment("all rows are deleted", {}, {}, (), (), ())
    check(example.go_to(nothing), nothing)


def test_the_moments_are_what_they_say() -> None:
    """The contents that were written by hand are those of the definitions."""
    for moment in HISTORY:
        by_definition = Moment.of(moment.what, moment.r, moment.s)
        assert sorted(by_definition.pairs) == sorted(moment.pairs), moment.what
        assert sorted(by_definition.r0) == sorted(moment.r0), moment.what
        assert sorted(by_definition.s0) == sorted(moment.s0), moment.what
    assert all(before != after for before, after in pairwise(HISTORY))
