"""`viewkeeper catch-up`: everything that the sources have committed up to now.

Exit code 0: done; 1: a view is halted or waits for a missing part of a global transaction, or a group has failed.
"""

import json
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.opening import (
    history_option,
    json_option,
    open_to_maintain,
    refuse_nothing_to_maintain,
    warehouse_option,
)
from viewkeeper.errors import ViewkeeperError

if TYPE_CHECKING:
    from viewkeeper.mediator.report import Report
    from viewkeeper.messages import Vector

EXIT_HALTED = 1


@click.command("catch-up", short_help="Process what the sources have committed up to now.")
@warehouse_option
@history_option
@json_option
@click.pass_context
def catch_up(context: click.Context, path: str, history: str | None, as_json: bool) -> None:
    """Bring every view up to what its sources have committed now, and end.

    Exit code 1 means that a view is halted, or waits for a part of a global transaction that has not come, or that a
    group of views has failed; all are named, and so they are by 'viewkeeper status'. With several views the name of the
    history holds {view}, and each gets a file. A history is kept in memory until the end.

    \b
    Examples:
      viewkeeper catch-up -w lake
      viewkeeper catch-up -w lake --history 'history-{view}.json'
    """
    from viewkeeper.cli.report_words import failed_groups, summary, way_out
    from viewkeeper.cli.tables import vector
    from viewkeeper.cli.wait_words import wait_lines
    from viewkeeper.cli.watching import report_as_json, watching

    last: Report | None = None

    with open_to_maintain(path, quiet=as_json) as warehouse:
        refuse_nothing_to_maintain(warehouse)
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
    halted = status.halted
    failed = failed_groups(last)
    if failure is not None and not failed:
        raise failure
    assert last is not None
    if as_json:
        click.echo(json.dumps({"positions": dict(reached), **report_as_json(last, {}), "halted": halted}))
    else:
        if failure is None:
            click.echo(f"caught up: {summary(last)}; at {vector(dict(reached))}")
        for line in failed:
            click.echo(line)
        if failure is not None and failure.hint:
            click.echo(f"  hint: {failure.hint}")
        for view, reason in halted.items():
            click.echo(f"halted: {view}: {reason}\n{way_out(view)}")
        for line in wait_lines(status):
            click.echo(line)
    context.exit(EXIT_HALTED if halted or failed or status.waits else 0)
