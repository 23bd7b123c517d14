"""`viewkeeper run`: views are maintained until it is stopped.

Exit code 0: stopped, by Ctrl-C, SIGTERM or its time; 1: the same, and something is wrong; with --exit-on-failure also
as soon as a group has failed or a view is halted.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from viewkeeper.cli.opening import (
    history_option,
    json_option,
    nothing_but_halted,
    open_to_maintain,
    warehouse_option,
)
from viewkeeper.clock import monotonic
from viewkeeper.errors import ViewkeeperError

if TYPE_CHECKING:
    from viewkeeper.mediator.report import Report


@click.command(short_help="Maintain the views until it is stopped.")
@warehouse_option
@click.option("--seconds", metavar="N", type=click.FloatRange(min=0), help="End after so long.  [default: never]")
@click.option("--exit-on-failure", is_flag=True, help="End with exit code 1 when a group fails or a view is halted.")
@click.option(
    "--retention",
    metavar="DURATION",
    help="Every ten minutes delete what is past it, as 'viewkeeper vacuum' does.  [default: nothing is deleted]",
)
@history_option
@json_option
@click.pass_context
def run(
    context: click.Context,
    path: str,
    seconds: float | None,
    exit_on_failure: bool,
    retention: str | None,
    history: str | None,
    as_json: bool,
) -> None:
    """Maintain every view as its sources commit, until Ctrl-C, SIGTERM or --seconds end it.

    In a terminal there is a line for each view and for each source; elsewhere one when something happens, and figures
    every ten seconds; --json writes one object a second, and the summary as the last. A transaction is counted once;
    each group of views that it concerns makes a state of it. "lag" counts by source the
    transactions that have come and are not in the view yet; the views of a group share what is counted for it.
    'viewkeeper status' shows from another terminal what is going on. A source that cannot be reached is tried again for
    as long as it takes, and holds up only the groups over it. A group that fails, be it for a full disk or a password
    that a source refuses, begins again at its last commit, after pauses that grow from 1 to 60 seconds. With
    --exit-on-failure that is left to whoever starts it again.

    A warehouse grows with every commit, and 'viewkeeper vacuum' needs 'run' to be stopped. With --retention states that
    ceased to be the last longer ago than that, and than an hour, expire while commits go on; a view's own retention has
    precedence.

    Stopped in whatever way, even by a crash, the views are at a committed state, and the next run goes on from there.
    Exit code 1 means that a view is halted, a group has failed, a file is missing, a source is out of reach, or a part
    of a global transaction has not come for longer than a second; each is named.

    \b
    Examples:
      viewkeeper run -w lake
      viewkeeper run -w lake --exit-on-failure
      viewkeeper run -w lake --retention '7 days'
      viewkeeper run -w lake --seconds 60 --history run.json
    """
    from viewkeeper.cli.report_words import failed_groups, summary
    from viewkeeper.cli.run_endings import end, end_with_halted
    from viewkeeper.cli.watching import report_as_json, watching
    from viewkeeper.durations import seconds as duration

    # Before anything is opened: a mistake in it has nothing to do with the warehouse.
    keep = None if retention is None else duration(retention)
    with open_to_maintain(path, quiet=True) as warehouse:
        if nothing_but_halted(warehouse):
            end_with_halted(context, warehouse.status(), as_json=as_json)
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
                report = warehouse.run(
                    seconds, history=history, watch=watch, exit_on_failure=exit_on_failure, retention=keep
                )
            except ViewkeeperError as error:
                # A group has failed, and says why.
                if last is None or not failed_groups(last):
                    raise
                report, hint = last, error.hint
        took = monotonic() - begin
        status = warehouse.status()
    said: dict[str, Any] = {}
    if as_json:
        said = {"seconds": round(took, 1), **report_as_json(report, {})}
    else:
        click.echo(f"stopped after {took:.0f} s: {summary(report)}")
    end(context, status, report, said, hint)


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
