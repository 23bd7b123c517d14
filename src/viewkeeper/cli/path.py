"""`viewkeeper path`: where the Delta table of a view is."""

import json

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option


@click.command(short_help="The folder of the Delta table of a view.")
@click.argument("view", shell_complete=complete_views)
@warehouse_option
@json_option
def path(view: str, path: str, as_json: bool) -> None:
    """Print the folder of the Delta table of VIEW, for other Delta readers, as it is now.

    A view that is recreated, by another definition or a reload of a changed table, gets another folder. The one that it
    had is then no Delta table any more: a reader that goes on with it fails, and does not see old rows. For a path that
    stays use 'viewkeeper publish'.

    \b
    Examples:
      viewkeeper path big_orders -w lake
      viewkeeper path big_orders -w lake --json
    """
    with open_to_read(path, quiet=as_json) as warehouse:
        found = str(warehouse.path_of(view))
    click.echo(json.dumps({"view": view, "path": found}) if as_json else found)
