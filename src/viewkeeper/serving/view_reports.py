"""Each view as the last commit has it, for those who watch a run: cheap enough to be asked many times a second."""

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.mediator.report import Report, ViewReport
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import ALGORITHM
from viewkeeper.serving.status import waiting
from viewkeeper.sql.refresh_mode import PROPERTY as REFRESH


class ViewReports:
    """Looks at a record once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._seen: tuple[int, tuple[ViewReport, ...]] = (-1, ())
        self._halts = Halts(files.store)
        self._halted: tuple[tuple[str, ...], dict[str, str]] = ((), {})

    def with_views(self, report: Report) -> Report:
        """The report of a mediator, with the views that it is about, and all that are halted: summaries are halted by
        their own refresh, and views that do not fit their sources any more before the mediator begins."""
        return Report(report.sources, report.groups, {**report.halted, **self.halts()}, self._views())

    def halts(self) -> dict[str, str]:
        """The halted views that users know, and why, in the order in which they were halted."""
        files = self._halts.files()
        if files != self._halted[0]:
            halts = sorted(self._halts.all().values(), key=lambda halt: halt.time)
            self._halted = files, {halt.view: halt.reason for halt in halts if not halt.view.startswith(RESERVED)}
        return self._halted[1]

    def _views(self) -> tuple[ViewReport, ...]:
        record = self._files.log.last()
        if record.commit != self._seen[0]:
            views = sorted(self._files.catalogs.read(record.catalog).values(), key=lambda view: view.name)
            maintained = [view for view in views if ALGORITHM in view.properties and not view.hidden]
            self._seen = record.commit, tuple(_report(view, record) for view in maintained)
        return self._seen[1]


def _report(view: Definition, record: Record) -> ViewReport:
    group, summary = record.groups[view.group], view.properties.get(SUMMARY)
    return ViewReport(
        view.name,
        summary["facts"]["core"] if summary else view.group,
        group.last,
        record.tables[view.counted].rows,
        group.time,
        waiting(view, record),
        view.properties.get(REFRESH, "continuous") != "continuous" if summary else False,
        view.selects,
        summary is not None,
    )
