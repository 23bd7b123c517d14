"""Missing parts over restarts: what was noted stays known, also where a capture merges commits differently."""

from contextlib import suppress
from pathlib import Path

import pytest
from test_waits import Kept, whole_ones

from viewkeeper.errors import ViewkeeperError
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.mediator.waits import ASKED, TIMEOUT, Wait


def catch_up_with_a_late_stream(kept: Kept, source: str) -> tuple[Wait, ...]:
    """A run whose group has nothing to do several times before one of its streams begins."""
    late = kept.accounts.sources[source]
    late.may_stream.clear()
    with kept.mediator() as mediator:
        steps = _counted(mediator)

        def begin_after_some_steps() -> None:
            if len(steps) >= 3:
                late.may_stream.set()

        mediator.catch_up(watch=begin_after_some_steps)
        return mediator.report().groups[0].waits


def _counted(mediator: Mediator) -> list[bool]:
    steps: list[bool] = []
    (group,) = mediator.groups
    step = group.step

    def counted() -> bool:
        steps.append(step())
        return steps[-1]

    group.step = counted  # type: ignore[method-assign]
    return steps


def killed_before_its_commit(kept: Kept) -> None:
    kept.store.fails = lambda number: True
    with suppress(ViewkeeperError):
        kept.catch_up()
    kept.store.fails = lambda number: False


def test_a_request_between_two_runs_outlives_the_start_of_the_second(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "batched-sweep")
    kept.accounts.raised("shop", 0, "t1")
    kept.remembered.to_give_up = kept.catch_up()
    assert catch_up_with_a_late_stream(kept, "shop") == ()
    assert [one.why for one in kept.remembered.gone.values()] == [ASKED]
    assert kept.remembered.to_give_up == []
    assert (0, 1, 0) in kept.shown()


def test_a_run_that_ends_before_a_stream_has_begun_forgets_nothing(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "batched-sweep")
    kept.accounts.raised("shop", 0, "t1")
    waits = kept.remembered.to_give_up = kept.catch_up()
    kept.accounts.shop.may_stream.clear()
    with kept.mediator() as mediator:
        steps = _counted(mediator)
        mediator.run(60, lambda: mediator.stop() if len(steps) >= 3 else None)
    assert kept.remembered.held == waits
    assert tuple(kept.remembered.to_give_up) == waits


@whole_ones
def test_a_late_part_that_was_not_committed_is_late_in_the_next_run(tmp_path: Path, algorithm: str) -> None:
    kept = Kept(tmp_path, algorithm)
    kept.accounts.raised("shop", 0, "t1")
    kept.remembered.to_give_up = kept.catch_up()
    assert kept.catch_up() == ()
    kept.accounts.raised("crm", 0, "t1")
    killed_before_its_commit(kept)
    assert [len(one.late) for one in kept.remembered.gone.values()] == [1]
    assert catch_up_with_a_late_stream(kept, "crm") == ()
    assert kept.remembered.gone == {}
    kept.accounts.raised("crm", 1)
    assert kept.catch_up() == ()
    assert {(0, 1, 1), (1, 0, 1)} <= kept.shown()


def test_a_request_is_for_the_same_part_at_a_later_position(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "batched-sweep")
    kept.accounts.shop.merges_at_start = True
    kept.accounts.raised("shop", 0, "t1")
    waits = kept.remembered.to_give_up = kept.catch_up()
    kept.accounts.raised("shop", 1)
    assert kept.catch_up() == ()
    (given,) = kept.remembered.gone.values()
    assert (given.why, given.since) == (ASKED, waits[0].since)
    assert given.arrived > waits[0].arrived
    assert kept.remembered.to_give_up == []


def test_the_time_of_a_wait_counts_over_runs_that_merge_differently(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "batched-sweep")
    kept.accounts.shop.merges_at_start = True
    kept.accounts.raised("shop", 0, "t1")
    (first,) = kept.catch_up()
    kept.accounts.raised("shop", 1, "t2")
    old, new = kept.catch_up()
    assert (old.id, old.since) == ("t1", first.since)
    # It is in the same transaction of the capture, and has waited for less time.
    assert (new.id, new.arrived) == ("t2", old.arrived)
    assert new.since > old.since
    assert kept.remembered.held == (old, new)


@whole_ones
@pytest.mark.parametrize("with_next", [False, True])
def test_what_was_given_up_and_not_committed_is_merged_differently(
    tmp_path: Path, algorithm: str, with_next: bool
) -> None:
    """with_next: with the part of another transaction that has the same id, which waits for its own other part."""
    kept = Kept(tmp_path, algorithm)
    kept.accounts.shop.merges_at_start = True
    kept.accounts.raised("shop", 0, "t1")
    kept.remembered.to_give_up = kept.catch_up()
    killed_before_its_commit(kept)
    (given,) = kept.remembered.gone.values()
    assert given.late == ()
    kept.accounts.raised("shop", 1, "t1" if with_next else None)
    waits = kept.catch_up()
    if with_next:
        assert [(wait.id, wait.missing) for wait in waits] == [("t1", ("crm",))]
    else:
        assert waits == ()
        assert {(0, 1, 0), (1, 1, 0)} <= kept.shown()
    kept.accounts.raised("crm", 0, "t1")
    assert kept.catch_up() == ()
    assert {(0, 1, 1), (1, 1, 0)} <= kept.shown()
    assert kept.remembered.gone == {}
    kept.accounts.assert_all_right(kept.plan, kept.store)


def test_a_late_part_that_was_not_committed_is_merged_differently(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "batched-sweep", give_up_after=0.0)
    kept.accounts.crm.merges_at_start = True
    kept.accounts.raised("shop", 0, "t1")
    assert kept.catch_up() == ()
    assert [one.why for one in kept.remembered.gone.values()] == [TIMEOUT]
    kept.accounts.raised("crm", 0, "t1")
    killed_before_its_commit(kept)
    kept.accounts.raised("crm", 1)
    assert kept.catch_up() == ()
    assert {(0, 1, 1), (1, 0, 1)} <= kept.shown()
    assert kept.remembered.gone == {}
    kept.accounts.assert_all_right(kept.plan, kept.store)
