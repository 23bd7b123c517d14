"""How `run` and `catch-up` end: what is wrong, each with the way out, and the exit code."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

import click

from viewkeeper.cli.report_words import failed_groups, problem_lines, unreachable, way_out
from viewkeeper.cli.wait_words import wait_lines

if TYPE_CHECKING:
    from viewkeeper.errors import SourceUnavailable
    from viewkeeper.mediator.report import Report
    from viewkeeper.serving.status import Status

EXIT_WRONG = 1


def end(
    context: click.Context,
    status: "Status",
    report: "Report",
    said: Mapping[str, Any],
    hint: str,
    *,
    lost: "SourceUnavailable | None" = None,
    young_waits: bool = False,
) -> NoReturn:
    """Say what is wrong, and exit.

    `said` is the beginning of an object, if a program reads it; `hint` is that of a failed group; `lost` says which
    source could not be reached. With `young_waits` a missing part counts however short it is missed.
    """
    failed = failed_groups(report)
    problems = (*status.problems, *unreachable(report, lost))
    if said:
        result = {**said, "halted": status.halted, "problems": [asdict(problem) for problem in problems]}
        click.echo(json.dumps(result))
    else:
        for line in failed:
            click.echo(line)
        if hint:
            click.echo(f"  hint: {hint}")
        _show(status)
        for line in problem_lines(problems):
            click.echo(line)
    context.exit(EXIT_WRONG if problems or failed or (young_waits and status.waits) else 0)


def end_with_halted(context: click.Context, status: "Status", *, as_json: bool) -> NoReturn:
    """There is nothing to maintain: every view is halted."""
    if as_json:
        problems = [asdict(problem) for problem in status.problems]
        click.echo(json.dumps({"halted": status.halted, "problems": problems}))
    else:
        click.echo("every view is halted")
        _show(status)
    context.exit(EXIT_WRONG)


def _show(status: "Status") -> None:
    for view, reason in status.halted.items():
        click.echo(f"halted: {view}: {reason}\n{way_out(view)}")
    for line in wait_lines(status):
        click.echo(line)
