"""`viewkeeper propagate`: summary-deltas of what waits for a refresh."""

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option
from viewkeeper.cli.progress import announced
from viewkeeper.cli.rounds import show_rounds


@click.command(short_help="Prepare the refresh of deferred summaries.")
@click.argument("view", required=False, shell_complete=complete_views)
@warehouse_option
@json_option
def propagate(view: str | None, path: str, as_json: bool) -> None:
    """Make summary-deltas of the changes that wait for the refresh of VIEW, or of all deferred summaries.

    This is the part of the work that can be done at any time: readers see nothing of it, and the refresh that follows
    finds little left to do. Changes come in by 'viewkeeper catch-up' or 'viewkeeper run'.

    \b
    Examples:
      viewkeeper propagate -w lake
      viewkeeper propagate sales_by_city -w lake
    """
    with open_to_maintain(path, quiet=as_json) as warehouse:
        with announced(f"propagating {view or 'the deferred summaries'} ...", quiet=as_json):
            done = warehouse.propagate(view)
        show_rounds(done, as_json=as_json)
