"""`viewkeeper give-up`: a missing part of a global transaction is not waited for any more."""

import json
from dataclasses import asdict

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option


@click.command("give-up", short_help="Stop waiting for a missing part of a global transaction.")
@click.argument("global_id", metavar="ID")
@click.option("--view", metavar="VIEW", shell_complete=complete_views, help="Only in the group of this view.")
@warehouse_option
@json_option
def give_up(global_id: str, view: str | None, path: str, as_json: bool) -> None:
    """Stop waiting for the missing parts of the global transaction ID, as 'viewkeeper status' names it.

    A 'run' that is at work takes this up within a second; otherwise the next 'catch-up' or 'run' does. If the parts
    have come by then, all are shown together as ever. If not, the parts that are there are shown without the others,
    and so is everything that was committed after them.

    The views that read sources on both sides are then weakly consistent: each source is shown as it was at some moment,
    but this transaction is split. 'status' says so until the late parts have come; with them the views are whole again,
    and reach their own level from there on. A history of the run has the split, and 'check' finds it.

    \b
    Examples:
      viewkeeper give-up 'transfer 17' -w lake
      viewkeeper give-up 'transfer 17' --view both -w lake
    """
    from viewkeeper.cli.wait_words import missing, weak

    with open_to_read(path, quiet=as_json) as warehouse:
        found = warehouse.give_up(global_id, view)
        running = warehouse.status().running
    if as_json:
        click.echo(json.dumps({"given_up": [asdict(one) for one in found]}))
        return
    when = "within a second" if running is not None and running.alive else "with the next catch-up or run"
    for one in found:
        click.echo(f"{', '.join(one.views)}: {one.wait.id} is given up {when}, if its {missing(one.wait)} has not come")
        click.echo(f"  then {weak(one.views)} until it has")
