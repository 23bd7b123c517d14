"""What the report of a mediator comes to, in words."""

from typing import TYPE_CHECKING

from viewkeeper.cli.tables import counted, moment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from viewkeeper.errors import SourceUnavailable
    from viewkeeper.mediator.report import GroupReport, Report
    from viewkeeper.serving.problems import Problem
    from viewkeeper.serving.status import GroupFailure


def summary(report: "Report") -> str:
    """What was done, in a line.

    A transaction of a source is one, whatever it concerns; each group of views that it concerns makes a state of it. A
    group that only passes changes on to summaries has states that nobody sees: these are not counted.
    """
    transactions = report.transactions
    if not transactions:
        return "no new transactions"
    came = counted(transactions, "transaction")
    following = sum(view.summary and not view.deferred for view in report.views)
    passing = {view.group for view in report.views if view.summary}
    passing -= {view.group for view in report.views if not view.summary}
    shown = [group for group in report.groups if group.name not in passing]
    commits, queries = (sum(getattr(group, name) for group in report.groups) for name in ("commits", "queries"))
    states = sum(group.states for group in shown)
    in_commits = f"in {counted(commits, 'commit')}"
    asked = f"with {queries / transactions:.2f} queries each" if transactions > 1 else f"with {_queries(queries)}"
    if not states and not commits:
        return f"{came} came, and no view shows {_them(transactions)} yet"
    followed = f", which {_summaries(following)} followed" if following else ""
    if not states and not following:
        return f"{came} {asked} for the next refresh of summaries"
    if not states:
        return f"{came} became part of {_summaries(following)} {in_commits} {asked}"
    taken = sum(1 for group in shown if group.transactions)
    if taken < 2:
        return f"{came} became {counted(states, 'state')} {in_commits} {asked}{followed}"
    made = f"{taken} groups of views made of {_them(transactions)} {counted(states, 'state')}"
    return f"{came} {asked}; {made} {in_commits}{followed}"


def _summaries(number: int) -> str:
    return "1 summary" if number == 1 else f"{number} summaries"


def _queries(number: int) -> str:
    return "1 query" if number == 1 else f"{number} queries"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def stopped(group: "GroupReport", report: "Report") -> str:
    """That a group has failed, and why; the failure of a source, which is told of the source, is not repeated."""
    cause = next((source.name for source in report.sources if source.failure == group.failure), None)
    return (f"stopped: {group.failure}" if cause is None else f"stopped with source {cause}") + tried_again(group)


def tried_again(group: "GroupReport") -> str:
    """When a group that has failed begins again, if that is known."""
    if not group.attempts:
        return ""
    return f"; tried again in {group.retry_in:.0f} s" if group.retry_in >= 0.5 else "; being tried again"


def failed_groups(report: "Report | None") -> list[str]:
    """A line for each reason why groups have failed."""
    groups: dict[str, list[str]] = {}
    for group in report.groups if report is not None else ():
        if group.failure is not None:
            groups.setdefault(group.failure, []).append(group.name)
    return [
        f"{'group' if len(names) == 1 else 'groups'} {', '.join(names)} stopped: {failure}"
        for failure, names in groups.items()
    ]


def failed(failure: "GroupFailure", running: "Report | None" = None) -> str:
    """That the maintenance of a group stopped with an error, and what to do; `running` is what a process said that
    tries it again."""
    views = ", ".join(failure.views) or "no view"
    again = next((group for group in running.groups if group.name == failure.group), None) if running else None
    on = "the next catch-up or run tries again"
    if again is not None and again.attempts:
        times = "once" if again.attempts == 1 else f"{again.attempts} times in a row"
        on = f"'run' is at work; it failed {times}{tried_again(again)}"
    return (
        f"group {failure.group} ({views}) failed {moment(failure.time)}: {failure.reason}\n"
        f"  its views are at their last state; {on}"
    )


def problem_lines(problems: "Iterable[Problem]") -> list[str]:
    """Problems of which nothing else says anything: missing files, and sources that do not answer."""
    lines = []
    for problem in problems:
        if problem.kind in ("missing", "unreachable"):
            lines += [f"{problem.kind}: {one_line(problem.detail)}", f"  the way out: {one_line(problem.hint)}"]
    return lines


def unreachable(report: "Report", lost: "SourceUnavailable | None" = None) -> "list[Problem]":
    """The sources that a mediator could not reach at its end; `lost` is the error of one of them."""
    from viewkeeper.serving.problems import UNREACHABLE, Problem

    hint = "its views are as they were; they go on when it is back"
    found = [
        Problem(UNREACHABLE, source.name, source.failure or source.trouble or "", hint)
        for source in report.sources
        if source.failure is not None or source.trouble is not None
    ]
    if lost is not None and not found:
        found.append(Problem(UNREACHABLE, "", lost.detail, lost.hint))
    return found


def way_out(view: str) -> str:
    """What to do about a halted view."""
    return f"  the way out: viewkeeper reload {view}"


def one_line(text: str) -> str:
    """Drivers explain themselves in several."""
    return " ".join(text.split())
