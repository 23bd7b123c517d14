"""`viewkeeper drop-view`: a view is maintained no more, and gone."""

import json

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option


@click.command("drop-view", short_help="Stop maintaining a view, and drop it.")
@click.argument("view", shell_complete=complete_views)
@warehouse_option
@json_option
def drop_view(view: str, path: str, as_json: bool) -> None:
    """Stop maintaining VIEW and drop it. Views that read it must be dropped first. Its files go with the next vacuum.

    \b
    Example:
      viewkeeper drop-view big -w lake
    """
    with open_to_maintain(path, quiet=as_json) as warehouse:
        warehouse.drop_view(view)
    click.echo(json.dumps({"dropped": view}) if as_json else f"dropped {view}")
