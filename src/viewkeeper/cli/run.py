"""`viewkeeper run`: views are maintained until it is stopped.

Exit code 0: stopped, by Ctrl-C, SIGTERM or its time; 1: the same, and a view is halted, waits for a missing part of a
global transaction, or a group has failed.
"""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from viewkeeper.cli.opening import (
    history_option,
    json_option,
    open_to_maintain,
    refuse_nothing_to_maintain,
    warehouse_option,
)
from viewkeeper.clock import monotonic
from viewkeeper.errors import ViewkeeperError

if TYPE_CHECKING:
    from viewkeeper.mediator.report import Report

EXIT_HALTED = 1


@click.command(short_help="Maintain the views until it is stopped.")
@warehouse_option
@click.option("--seconds", metavar="N", type=click.FloatRange(min=0), help="End after so long.  [default: never]")
@history_option
@json_option
@click.pass_context
def run(context: click.Context, path: str, seconds: float | None, history: str | None, as_json: bool) -> None:
    """Maintain every view as its sources commit, until Ctrl-C, SIGTERM or --seconds end it.

    In a terminal there is a line for each view and for each source; elsewhere one when something happens, and figures
    every ten seconds; --json writes one object a second, and the summary as the last. A transaction is counted once;
    each group of views that it concerns makes a state of it. "lag" counts by source the
    transactions that have come and are not in the view yet; the views of a group share what is counted for it.
    'viewkeeper status' shows from another terminal what is going on. A source that cannot be reached is tried again for
    as long as it takes, and holds up only the groups over it.

    Stopped in whatever way, even by a crash, the views are at a committed state, and the next run goes on from there.
    Exit code 1 means that a view is halted, that a group has failed, or that a part of a global transaction has not
    come for longer than a second; each is named.

    \b
    Examples:
      viewkeeper run -w lake
      viewkeeper run -w lake --seconds 60 --history run.json
    """
    from viewkeeper.cli.report_words import failed_groups, summary, way_out
    from viewkeeper.cli.wait_words import wait_lines
    from viewkeeper.cli.watching import LASTING, report_as_json, watching

    with open_to_maintain(path, quiet=True) as warehouse:
        refuse_nothing_to_maintain(warehouse)
        begin = monotonic()
        last: Report | None = None
        hint = ""
        with watching(as_json=as_json) as show, stopped_by_signals(warehouse.stop) as begun:

            def watch(report: "Report") -> None:
                nonlocal last
                begun()
                last = report
                show(report)

            try:
                report = warehouse.run(seconds, history=history, watch=watch)
            except ViewkeeperError as error:
                # All groups have failed: they say why.
                if last is None or not failed_groups(last):
                    raise
                report, hint = last, error.hint
        took = monotonic() - begin
        status = warehouse.status()
    halted = status.halted
    failed = failed_groups(report)
    if as_json:
        told = {"seconds": round(took, 1), **report_as_json(report, {}), "halted": halted}
        click.echo(json.dumps(told))
    else:
        click.echo(f"stopped after {took:.0f} s: {summary(report)}")
        for line in failed:
            click.echo(line)
        if hint:
            click.echo(f"  hint: {hint}")
        for view, reason in halted.items():
            click.echo(f"halted: {view}: {reason}\n{way_out(view)}")
        for line in wait_lines(status):
            click.echo(line)
    # A younger one is on its way: it was stopped between two parts.
    waits = [one for one in status.waits if one.wait.seconds() >= LASTING]
    context.exit(EXIT_HALTED if halted or failed or waits else 0)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Ctrl-C and SIGTERM stop what is running; a second one does not wait for it.

    Yields what is to be called once there is something to stop: a signal may have come before.
    """
    came = running = False

    def handle(number: int, frame: Any) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True
        stop()

    def begun() -> None:
        nonlocal running
        if came and not running:
            stop()
        running = True

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield begun
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
