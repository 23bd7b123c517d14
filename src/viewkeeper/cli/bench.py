"""`viewkeeper bench`: is incremental maintenance worth it for these views?"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option
from viewkeeper.cli.progress import announced

if TYPE_CHECKING:
    from viewkeeper.serving.measuring.bench import ViewBench


@click.command(short_help="What refreshes took, beside recomputing the views now.")
@click.argument("views", metavar="[VIEW]...", nargs=-1, shell_complete=complete_views)
@warehouse_option
@click.option("--no-recompute", is_flag=True, help="Only what the commits say: no source is read, no Spark started.")
@json_option
def bench(views: tuple[str, ...], path: str, no_recompute: bool, as_json: bool) -> None:
    """Is keeping each VIEW fresh by its changes worth it? What refreshes took, and what recomputing it takes.

    "refresh" is the median over the newest 200 commits: the time from the delivery of the first transaction of a commit
    until its files were written, the answers of sources included; of a deferred summary, propagating and applying. The
    views of a group are refreshed together, so each of them shows the time of all; of a summary those commits count
    that changed it or another table of its lattice. "recompute" is measured now: all relations are read from their
    sources, or from the views that it is over, and the SELECT is run over them by a Spark that is warm; storing the
    result is not part of it. One measurement on this machine says little of another: look at the order of magnitude.

    Nothing is written, and no lock is taken.

    \b
    Examples:
      viewkeeper bench -w lake
      viewkeeper bench big --json -w lake
      viewkeeper bench --no-recompute -w lake
    """
    with open_to_read(path, quiet=as_json) as warehouse, announced("measuring ...", quiet=as_json):
        found = warehouse.bench(*views, recompute=not no_recompute)
    if as_json:
        click.echo(json.dumps({"views": [_as_json(one) for one in found]}))
        return
    _show(found)


def _as_json(one: "ViewBench") -> dict[str, Any]:
    return {**asdict(one), "recompute_seconds": one.recompute_seconds, "times": one.times}


def _show(found: "list[ViewBench]") -> None:
    from viewkeeper.cli.tables import show_table

    if not found:
        click.echo("there are no views over sources")
        return
    rows = [
        (
            one.view,
            f"{one.rows:,}",
            str(one.states),
            str(one.refreshes),
            f"{one.updates:,}",
            "-" if one.queries_per_update is None else f"{one.queries_per_update:.2f}",
            _seconds(one.refresh_seconds),
            _seconds(one.recompute_seconds),
        )
        for one in found
    ]
    headings = ("view", "rows", "states", "refreshes", "updates", "queries each", "refresh", "recompute")
    show_table(headings, rows, right=range(1, 8))
    click.echo()
    for one in found:
        click.echo(f"{one.view}: {_verdict(one)}")


def _verdict(one: "ViewBench") -> str:
    """What the figures mean, and no more than they do."""
    if one.refresh_seconds is None:
        return "no refresh was measured yet; bench again after 'viewkeeper catch-up' or 'viewkeeper run' had changes"
    if one.recompute is None:
        return f"not recomputed: {one.not_recomputed}"
    parts = f"{one.recompute.read_seconds:.2f} s to read {one.recompute.rows_read:,} rows, "
    parts += f"{one.recompute.compute_seconds:.2f} s to compute"
    times = one.times or 0.0
    if times >= 2:
        return f"a recompute takes {times:,.0f} times as long as a typical refresh ({parts})"
    if times >= 0.5:
        return f"a recompute takes about as long as a typical refresh ({parts})"
    return f"a recompute is {1 / times:,.0f} times faster than a typical refresh ({parts})"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3f} s"
