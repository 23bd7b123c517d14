"""`viewkeeper compact`: pending deltas become part of the base, now."""

import json

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_write, warehouse_option
from viewkeeper.cli.progress import announced


@click.command(short_help="Put pending deltas into the base of a view.")
@click.argument("view", required=False, shell_complete=complete_views)
@warehouse_option
@json_option
def compact(view: str | None, path: str, as_json: bool) -> None:
    """Give VIEW, or every view that has pending deltas, a new base that holds its last state.

    The content of every state stays what it was, and so do the files of earlier ones, until vacuum removes them.

    \b
    Examples:
      viewkeeper compact -w lake
      viewkeeper compact big_orders -w lake
    """
    with (
        open_to_write(path, quiet=as_json) as warehouse,
        announced(f"compacting {view or 'the views'} ...", quiet=as_json),
    ):
        done = warehouse.compact(view)
    if as_json:
        click.echo(json.dumps({"compacted": done}))
    else:
        click.echo("\n".join(f"compacted {name}" for name in done) or "there was nothing to compact")
