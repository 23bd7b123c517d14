"""`viewkeeper publish`: a plain copy of a view, for any reader."""

import json

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option
from viewkeeper.cli.progress import announced


@click.command(short_help="Copy a view into a Delta table of its own.")
@click.argument("view", shell_complete=complete_views)
@click.argument("folder")
@warehouse_option
@click.option("--state", metavar="N", type=int, help="Which state of the view.  [default: the last]")
@json_option
def publish(view: str, folder: str, path: str, state: int | None, as_json: bool) -> None:
    """Write the rows of VIEW as a Delta table in FOLDER, outside the warehouse.

    The table has the columns of the view and nothing else, so that any tool reads it as it is. A table that was
    published there before gets a new version.

    \b
    Examples:
      viewkeeper publish big_orders /data/big_orders -w lake
      viewkeeper publish big_orders /data/monday --state 42
    """
    # Read only: the warehouse itself is not written, so this works beside a writer.
    with open_to_read(path, quiet=as_json) as warehouse, warehouse.snapshot() as snapshot:
        number = snapshot.state(view) if state is None else state
        with announced(f"copying {view} ...", quiet=as_json):
            place = warehouse.publish(view, folder, number)
    if as_json:
        click.echo(json.dumps({"view": view, "state": number, "folder": str(place)}))
    else:
        click.echo(f"published state {number} of {view} to {place}")
