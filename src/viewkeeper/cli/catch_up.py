"""`viewkeeper catch-up`: everything that the sources have committed up to now.

Exit code 0: done; 1: something is wrong, as with `run`.
"""

from typing import TYPE_CHECKING, Any

import click

from viewkeeper.cli.opening import (
    history_option,
    json_option,
    nothing_but_halted,
    open_to_maintain,
    warehouse_option,
)
from viewkeeper.errors import SourceUnavailable, ViewkeeperError

if TYPE_CHECKING:
    from viewkeeper.mediator.report import Report
    from viewkeeper.messages import Vector


@click.command("catch-up", short_help="Process what the sources have committed up to now.")
@warehouse_option
@history_option
@json_option
@click.pass_context
def catch_up(context: click.Context, path: str, history: str | None, as_json: bool) -> None:
    """Bring every view up to what its sources have committed now, and end.

    Exit code 1 means that a view is halted or waits for a part of a global transaction that has not come, that a group
    of views has failed, a file is missing, or a source is out of reach for 30 seconds; all are named, and so they are
    by 'viewkeeper status --check'. With several views the name of the history holds {view}, and each gets a file. A
    history is kept in memory until the end.

    \b
    Examples:
      viewkeeper catch-up -w lake
      viewkeeper catch-up -w lake --history 'history-{view}.json'
    """
    from viewkeeper.cli.report_words import failed_groups, summary
    from viewkeeper.cli.run_endings import end, end_with_halted
    from viewkeeper.cli.tables import vector
    from viewkeeper.cli.watching import report_as_json, watching

    last: Report | None = None

    with open_to_maintain(path, quiet=as_json) as warehouse:
        if nothing_but_halted(warehouse):
            end_with_halted(context, warehouse.status(), as_json=as_json)
        with watching(quietly=True, as_json=as_json) as show:

            def watch(report: "Report") -> None:
                nonlocal last
                last = report
                show(report)

            failure: ViewkeeperError | None = None
            reached: Vector = {}
            try:
                reached = warehouse.catch_up(history=history, watch=watch)
            except ViewkeeperError as error:
                failure = error
        status = warehouse.status()
    lost = failure if isinstance(failure, SourceUnavailable) else None
    if failure is not None and (last is None or not (failed_groups(last) or lost)):
        raise failure
    assert last is not None
    said: dict[str, Any] = {}
    if as_json:
        said = {"positions": dict(reached), **report_as_json(last, {})}
    elif failure is None:
        click.echo(f"caught up: {summary(last)}; at {vector(dict(reached))}")
    hint = failure.hint if failure is not None and lost is None else ""
    end(context, status, last, said, hint, lost=lost, young_waits=True)
