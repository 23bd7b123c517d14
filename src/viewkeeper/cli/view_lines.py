"""A line for each view while a mediator is at work: its state, how far it is behind, and what it costs.

The views of a group are maintained together: what is counted by group (transactions, queries) is said of each of them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from viewkeeper.cli.loading import duration
from viewkeeper.cli.tables import row_cell
from viewkeeper.clock import now

if TYPE_CHECKING:
    from viewkeeper.mediator.report import GroupReport, Report, SourceReport, ViewReport

VIEW_HEADINGS = ("view", "state", "rows", "lag", "updates/s", "queries each", "last refresh")
VIEW_RIGHT = (1, 2, 4, 5)


def view_rows(report: "Report", rates: Mapping[str, float]) -> list[tuple[str, ...]]:
    """The views of a report under VIEW_HEADINGS."""
    groups = {group.name: group for group in report.groups}
    sources = {source.name: source for source in report.sources}
    return [
        _cells(view, groups.get(view.group), sources, rates.get(view.group), halted=view.name in report.halted)
        for view in report.views
    ]


def _cells(
    view: "ViewReport",
    group: "GroupReport | None",
    sources: "Mapping[str, SourceReport]",
    rate: float | None,
    *,
    halted: bool,
) -> tuple[str, ...]:
    rows = row_cell(view.rows, selects=view.selects)
    stopped = "halted" if halted or group is None else "stopped" if group.failure else None
    if stopped is not None or group is None:
        return view.name, str(view.state), rows, stopped or "-", "-", "-", _age(view)
    return (
        view.name,
        str(view.state),
        rows,
        _lag(group, sources),
        "-" if rate is None else f"{rate:.1f}",
        f"{group.queries / group.transactions:.2f}" if group.transactions else "-",
        _refresh(view, group),
    )


def _lag(group: "GroupReport", sources: "Mapping[str, SourceReport]") -> str:
    """`crm away 12 s, shop 3`: by source the transactions that have come and are not in the view yet, or for how long
    none can have come. A source that is not behind is not worth the room."""
    parts = []
    for name, count in sorted(group.behind.items()):
        source = sources.get(name)
        if source is not None and source.failure is not None:
            parts.append(f"{name} stopped")
        elif source is not None and source.trouble is not None:
            parts.append(f"{name} away {duration(source.unreachable_for)}")
        elif count:
            parts.append(f"{name} {count:,}")
    return ", ".join(parts) or "none"


def _refresh(view: "ViewReport", group: "GroupReport") -> str:
    if view.deferred:
        return f"{_age(view)}, {view.waiting:,} wait"
    return _age(view) + (f" in {group.refresh_seconds:.2f} s" if group.refresh_seconds is not None else "")


def _age(view: "ViewReport") -> str:
    if not view.refreshed:
        return "-"
    return f"{duration(max((now() - datetime.fromisoformat(view.refreshed)).total_seconds(), 0.0))} ago"
