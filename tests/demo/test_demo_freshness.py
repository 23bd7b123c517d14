"""How fresh the demo's views were: from commit records and the times of the writers."""

from datetime import UTC, datetime, timedelta

from viewkeeper.demo.demonstration import Quiet
from viewkeeper.demo.freshness import lags
from viewkeeper.lake.log.record import GroupState, Record
from viewkeeper.mediator.report import GroupReport, Report, SourceReport

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def record(number: int, seconds: float, **groups: GroupState) -> Record:
    return Record(number, at(seconds).isoformat(), "w", 1, {}, groups)


def test_a_transaction_is_as_late_as_the_first_commit_that_has_it() -> None:
    records = [
        record(1, 2, joins=GroupState({"a": "1", "b": "0"}, 1, ({"a": "1"},)), sums=GroupState({"a": "0"}, 0)),
        record(2, 3, joins=GroupState({"a": "1", "b": "0"}, 1), sums=GroupState({"a": "1"}, 1, ({"a": "1"},))),
        record(
            3,
            7,
            joins=GroupState({"a": "2", "b": "1"}, 3, ({"b": "1"}, {"a": "2"})),
            sums=GroupState({"a": "2"}, 2, ({"a": "2"},)),
        ),
    ]
    found = lags(records, {"a": [at(1), at(4)], "b": [at(5)]}, "joins")
    assert sorted(found["joins"]) == [1.0, 2.0, 3.0]
    assert sorted(found["sums"]) == [2.0, 3.0], "it does not follow b"


def test_transactions_that_cannot_be_told_apart_are_left_out() -> None:
    records = [record(1, 9, joins=GroupState({"a": "7", "b": "1"}, 2, ({"a": "7"}, {"b": "1"})))]
    assert lags(records, {"a": [at(1), at(2)], "b": [at(4)]}, "joins") == {"joins": [5.0]}


def report(transactions: int, in_progress: int = 0, waiting: int = 0) -> Report:
    group = GroupReport("g", ("v",), {}, 0, 0, in_progress, transactions, 0, 0, 0, 0, 0)
    return Report((SourceReport("s", "1", waiting),), (group,), {})


def test_it_is_quiet_when_nothing_comes_and_nothing_is_under_way() -> None:
    quiet = Quiet(long_enough=0.0)
    told = [report(3), report(3), report(3, waiting=1), report(3, in_progress=1), report(4), report(4)]
    assert [quiet.lasts(one) for one in told] == [False, True, False, False, False, True]
    patient = Quiet(long_enough=1e9)
    assert not any(patient.lasts(report(3)) for _ in range(3))
