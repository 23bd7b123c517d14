"""What is shown of a mediator at work."""

import json
from dataclasses import replace

import pytest

from viewkeeper.cli import watching
from viewkeeper.cli.report_words import summary
from viewkeeper.cli.watching import OF_ALL, Rates, report_as_json, trouble
from viewkeeper.mediator.report import GroupReport, Report, SourceReport, ViewReport

SHOP = SourceReport("shop", "00000000000000000012", 3, retained=2048, transactions=10)
AWAY = replace(SHOP, trouble="connection\n\trefused", unreachable_for=12.4, attempts=4, retry_in=3.2)
GROUP = GroupReport("g", ("v",), {"shop": "00000000000000000012"}, 10, 4, 0, 10, 0, 15, 8, 100, 50)
CALM = Report((SHOP,), (GROUP,), {})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set."""
    time = [100.0]
    monkeypatch.setattr(watching, "monotonic", lambda: time[0])
    return time


def test_the_rate_is_that_of_the_last_seconds(clock: list[float]) -> None:
    rates = Rates()
    assert rates.of(CALM) == {"g": 0.0, OF_ALL: 0.0}
    seen = []
    for second in range(1, 20):
        clock[0] += 1
        count = 10 + 2 * second if second < 10 else 30
        seen.append(rates.of(replace(CALM, groups=(replace(GROUP, transactions=count),)))["g"])
    assert seen[3] == 2.0
    assert seen[-1] == 0.0


def test_trouble_is_told_with_the_time_until_the_next_try() -> None:
    assert trouble(SHOP) is None
    assert trouble(AWAY) == "out of reach for 12 s, tried 4 times, again in 3 s: connection refused"
    assert trouble(replace(AWAY, retry_in=0.0)) == (
        "out of reach for 12 s, tried 4 times, trying again: connection refused"
    )
    assert trouble(replace(AWAY, failure="the password is wrong")) == "stopped: the password is wrong"


def test_the_summary() -> None:
    assert summary(CALM) == "10 transactions became 10 states in 4 commits with 1.50 queries each"
    nothing = replace(GROUP, transactions=0, states=0, commits=0, queries=0)
    assert summary(replace(CALM, groups=(GROUP, nothing))) == summary(CALM)
    assert summary(Report((replace(SHOP, transactions=0),), (nothing,), {})) == "no new transactions"
    begun = replace(GROUP, transactions=2, states=0, commits=0, queries=1)
    assert summary(Report((replace(SHOP, transactions=2),), (begun,), {})) == (
        "2 transactions came, and no view shows them yet"
    )


def test_states_that_only_summaries_see_are_not_counted() -> None:
    feed = replace(GROUP, name="feed", views=("_vk_feed",), states=7, commits=3, queries=0)
    join = ViewReport("v", "g", 10, 5, "")
    summaries = [ViewReport(name, "feed", 3, 2, "", summary=True) for name in ("n", "m")]
    assert summary(Report((SHOP,), (GROUP, feed), {}, (join, *summaries))) == (
        "10 transactions became 10 states in 7 commits with 1.50 queries each, which 2 summaries followed"
    )
    assert summary(Report((SHOP,), (feed,), {}, (summaries[0],))) == (
        "10 transactions became part of 1 summary in 3 commits with 0.00 queries each"
    )
    deferred = replace(summaries[0], deferred=True)
    assert summary(Report((SHOP,), (feed,), {}, (deferred,))) == (
        "10 transactions with 0.00 queries each for the next refresh of summaries"
    )
    of_a_view = replace(summaries[0], group="g")
    assert summary(Report((SHOP,), (GROUP,), {}, (join, of_a_view))).startswith("10 transactions became 10 states in 4")


def test_a_transaction_that_concerns_two_groups_is_one() -> None:
    one = replace(GROUP, transactions=1, states=1, commits=1, queries=2)
    assert summary(Report((replace(SHOP, transactions=1),), (one, replace(one, name="h")), {})) == (
        "1 transaction with 4 queries; 2 groups of views made of it 2 states in 2 commits"
    )
    two = Report((SHOP,), (GROUP, replace(GROUP, name="h", states=7, commits=3, queries=0)), {})
    assert summary(two) == (
        "10 transactions with 1.50 queries each; 2 groups of views made of them 17 states in 7 commits"
    )
    assert report_as_json(two, {})["transactions"] == 10


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()]


def test_what_ends_the_verb_with_an_error_is_left_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    gone = replace(SHOP, failure="the password is wrong", transactions=0)
    unaware = replace(GROUP, behind={"shop": 0})
    stopped = replace(unaware, failure="the password is wrong")
    with watching.watching(as_json=False, quietly=True) as show:
        show(replace(CALM, sources=(gone,), groups=(unaware, unaware)))
        show(replace(CALM, sources=(gone,), groups=(stopped, replace(stopped, name="h"))))
    assert lines(capsys) == []


def test_every_failure_of_every_group_is_a_line_with_the_next_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    def failing(attempts: int, left: float) -> Report:
        failed = replace(GROUP, failure="no space", attempts=attempts, retry_in=left)
        return replace(CALM, groups=(failed, replace(failed, name="h")))

    with watching.watching(as_json=False, positions=False) as show:
        for attempts, left in ((1, 1.0), (1, 0.4), (1, 0.0), (2, 2.0), (2, 0.0)):
            show(failing(attempts, left))
        show(CALM)
    said = [line for line in lines(capsys) if line.startswith("group")]
    assert said == [
        "group g: stopped: no space; tried again in 1 s",
        "group h: stopped: no space; tried again in 1 s",
        "group g: stopped: no space; tried again in 2 s",
        "group h: stopped: no space; tried again in 2 s",
        "group g: goes on",
    ]


def test_a_failure_is_told_once_while_other_groups_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    gone = replace(SHOP, failure="the password is wrong", transactions=0)
    stopped = replace(GROUP, behind={"shop": 0}, failure="the password is wrong")
    other = replace(GROUP, name="other", behind={"crm": 0})
    with watching.watching(as_json=False, positions=False) as show:
        show(replace(CALM, sources=(gone,), groups=(stopped, other)))
    assert lines(capsys) == [
        "source shop: stopped: the password is wrong",
        "group g: stopped with source shop",
        "no new transactions",
    ]


def test_json_has_what_follows_from_the_figures() -> None:
    (group,) = report_as_json(CALM, {"g": 2.0})["groups"]
    assert (group["transactions_per_second"], group["queries_per_transaction"]) == (2.0, 1.5)


def test_lines_are_written_when_something_happens(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    halted = replace(CALM, halted={"v": "TRUNCATE"})
    away = replace(CALM, sources=(AWAY,))
    failed = replace(CALM, groups=(replace(GROUP, failure="no privilege"), replace(GROUP, name="other")))
    with watching.watching(as_json=False) as show:
        for report in (CALM, CALM, away, replace(CALM, sources=(replace(AWAY, attempts=5),)), CALM, halted, failed):
            clock[0] += 1
            show(report)
        clock[0] += watching.LINE_EVERY
        show(CALM)
    assert lines(capsys) == [
        "10 transactions became 10 states in 4 commits with 1.50 queries each, 0.0 per second; at shop 12",
        "source shop: out of reach: connection refused",
        "source shop: reached again",
        "view v: halted: TRUNCATE; the way out: viewkeeper reload v",
        "group g: stopped: no privilege",
        "group g: goes on",
        "10 transactions became 10 states in 4 commits with 1.50 queries each, 0.0 per second; at shop 12",
    ]


def test_lines_say_how_many_came_in_a_second(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    begun = replace(GROUP, transactions=0, states=0, commits=0, queries=0)
    with watching.watching(as_json=False, positions=False) as show:
        show(replace(CALM, sources=(replace(SHOP, transactions=0),), groups=(begun,)))
        clock[0] += watching.LINE_EVERY
        show(CALM)
    assert lines(capsys) == [
        "no new transactions",
        "10 transactions became 10 states in 4 commits with 1.50 queries each, 1.0 per second",
    ]


def test_json_comes_once_a_second(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with watching.watching(as_json=True) as show:
        for _ in range(17):
            show(CALM)
            clock[0] += 0.125
    assert len([json.loads(line) for line in capsys.readouterr().out.splitlines()]) == 3
