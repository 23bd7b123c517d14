"""`viewkeeper states`: the states of a view that can be read."""

import json
from dataclasses import asdict

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option


@click.command(short_help="The states of a view that can be read.")
@click.argument("view", shell_complete=complete_views)
@warehouse_option
@click.option("--last", metavar="N", type=click.IntRange(min=1), help="Only the last N.")
@json_option
def states(view: str, path: str, last: int | None, as_json: bool) -> None:
    """List the states of VIEW that can be read, oldest first.

    Each with the positions of the sources that it reflects, when it was committed, and how many rows are stored for it,
    duplicates counted. VIEW may be the name of a family, the tables of a CUBE, ROLLUP or GROUPING SETS: then the states
    that all of them have.

    \b
    Examples:
      viewkeeper states big_orders -w lake
      viewkeeper states big_orders --last 5 --json
    """
    from viewkeeper.cli.tables import moment, show_table, vector

    with open_to_read(path, quiet=as_json) as warehouse:
        found, selects = warehouse.states(view, last), warehouse.selects(view)
    if as_json:
        click.echo(json.dumps({"view": view, "states": [asdict(state) for state in found]}))
        return
    rows = [
        (str(one.state), str(one.rows), str(one.commit), moment(one.time), vector(dict(one.vector))) for one in found
    ]
    show_table(("state", "stored rows" if selects else "rows", "commit", "time", "vector"), rows, right=(0, 1, 2))
