"""`viewkeeper remove-source`: undo what was installed, and forget a source."""

import json

import click

from viewkeeper.cli.completing import complete_sources
from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option


@click.command("remove-source", short_help="Undo what was installed at a source, and forget it.")
@click.argument("name", shell_complete=complete_sources)
@click.option("--force", is_flag=True, help="Forget it even if it cannot be reached; what was installed there stays.")
@warehouse_option
@json_option
def remove_source(name: str, force: bool, path: str, as_json: bool) -> None:
    """Take away what add-source --install put into source NAME, and forget the source.

    Views over it must be dropped first. What the user of the URL may not take away is printed, as statements for
    somebody who may.

    \b
    Example:
      viewkeeper remove-source shop -w lake
    """
    with open_to_maintain(path, quiet=as_json) as warehouse:
        left = warehouse.remove_source(name, force=force)
    if as_json:
        click.echo(json.dumps({"removed": name, "left": left}))
        return
    click.echo(f"removed {name}")
    if left:
        click.echo("left for somebody who may:\n" + "\n".join(f"  {statement}" for statement in left))
