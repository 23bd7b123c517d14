"""`viewkeeper reload`: a view is recreated from its sources."""

import json

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.loading import load_shown
from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option


@click.command(short_help="Compute a view again from its sources.")
@click.argument("views", metavar="VIEW...", nargs=-1, required=True, shell_complete=complete_views)
@warehouse_option
@json_option
def reload(views: tuple[str, ...], path: str, as_json: bool) -> None:
    """Compute each VIEW from its sources as they are; what is different becomes one new state.

    This is the way out for a view that was halted: by a TRUNCATE, an altered table, a position that its source no
    longer has, or an expression that failed on a row. It is maintained again from there on. Other views of its group
    keep their place, and it is computed at that: catch up first if the cause was fixed only now.

    \b
    Example:
      viewkeeper reload big -w lake
    """
    from viewkeeper.cli.tables import row_count

    with open_to_maintain(path, quiet=as_json) as warehouse:
        status = warehouse.status()
        known, halted = {name for view in status.views for name in (view.view, view.family)}, list(status.halted)
        for name in views:
            if name not in known:
                warehouse.reload(name)  # which says what is wrong with it, before anything is done
        # Those that are halted in the order in which they can be reloaded: what a view reads comes before it.
        for name in sorted(views, key=lambda name: halted.index(name) if name in halted else len(halted)):
            with load_shown(warehouse, name, quiet=as_json):
                warehouse.reload(name)
        made = [view for view in warehouse.status().views if view.view in views or view.family in views]
    if as_json:
        told = {view.view: {"state": view.state, "rows": view.rows} for view in made}
        click.echo(json.dumps({"reloaded": told}))
        return
    for view in made:
        click.echo(f"reloaded {view.view}: {row_count(view.rows, selects=view.selects)} in state {view.state}")
