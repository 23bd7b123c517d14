"""Each view as the last commit has it, for those who watch a run: cheap enough to be asked many times a second."""

from viewkeeper.mediator.report import Report, ViewReport
from viewkeeper.sql.refresh_mode import PROPERTY as REFRESH
from viewkeeper.warehouse.catalog import Definition
from viewkeeper.warehouse.record import Record
from viewkeeper.warehouse.snapshot import Files
from viewkeeper.warehouse.status import waiting
from viewkeeper.warehouse.summaries.naming import SUMMARY
from viewkeeper.warehouse.view_properties import ALGORITHM


class ViewReports:
    """Looks at a record once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._seen: tuple[int, tuple[ViewReport, ...]] = (-1, ())

    def with_views(self, report: Report) -> Report:
        """The report of a mediator, with the views that it is about."""
        return Report(report.sources, report.groups, report.halted, self._views())

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
