"""What the report of a mediator comes to, in words."""

from typing import TYPE_CHECKING

from viewkeeper.cli.tables import counted, moment

if TYPE_CHECKING:
    from viewkeeper.mediator.report import GroupReport, Report
    from viewkeeper.warehouse.status import GroupFailure


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
    return f"stopped: {group.failure}" if cause is None else f"stopped with source {cause}"


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


def failed(failure: "GroupFailure") -> str:
    """That the maintenance of a group stopped with an error, and what to do."""
    views = ", ".join(failure.views) or "no view"
    return (
        f"group {failure.group} ({views}) failed {moment(failure.time)}: {failure.reason}\n"
        "  its views are at their last state; the next catch-up or run tries again"
    )


def way_out(view: str) -> str:
    """What to do about a halted view."""
    return f"  the way out: viewkeeper reload {view}"


def one_line(text: str) -> str:
    """Drivers explain themselves in several."""
    return " ".join(text.split())
