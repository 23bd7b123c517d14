"""`viewkeeper refresh`: deferred summaries are brought up to their core."""

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option
from viewkeeper.cli.progress import announced
from viewkeeper.cli.rounds import show_rounds


@click.command(short_help="Refresh deferred summaries.")
@click.argument("view", required=False, shell_complete=complete_views)
@warehouse_option
@json_option
def refresh(view: str | None, path: str, as_json: bool) -> None:
    """Apply everything that waits for the refresh of VIEW, or of all deferred summaries.

    All tables of a lattice are published in one commit: readers see all of them before, or all of them after. What the
    sources have committed since the last 'viewkeeper catch-up' is not part of it.

    \b
    Examples:
      viewkeeper catch-up -w lake && viewkeeper refresh -w lake
      viewkeeper refresh sales_by_city -w lake
    """
    with open_to_maintain(path, quiet=as_json) as warehouse:
        with announced(f"refreshing {view or 'the deferred summaries'} ...", quiet=as_json):
            done = warehouse.refresh(view)
        show_rounds(done, as_json=as_json)
