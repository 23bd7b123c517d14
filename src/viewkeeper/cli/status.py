"""`viewkeeper status`: the warehouse at its last commit, and each view."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option

if TYPE_CHECKING:
    from viewkeeper.warehouse.status import Status


@click.command(short_help="What a warehouse holds, view by view.")
@warehouse_option
@json_option
def status(path: str, as_json: bool) -> None:
    """Show what a warehouse holds: per view its last state, where the sources are in it, and its size.

    "pending" counts the signed rows that were appended since the last compaction, and their files. Positions are shown
    without leading zeros; --json has everything as it is stored.

    \b
    Example:
      viewkeeper status -w lake
    """
    with open_to_read(path, quiet=as_json) as warehouse:
        found = warehouse.status()
    if as_json:
        click.echo(json.dumps(asdict(found)))
    else:
        _show(found)


def _show(found: "Status") -> None:
    from viewkeeper.cli.tables import counted, moment, show_table, size, vector

    click.echo(f"warehouse  {found.path}")
    click.echo(f"commit     {found.commit}, made {moment(found.time)}; {found.commits} retained")
    click.echo(f"readers    {found.readers} pinned")
    if not found.views:
        click.echo("views      none yet")
        return
    click.echo()
    rows = [
        (
            view.view,
            view.group,
            view.layout,
            str(view.state),
            str(view.rows),
            str(view.files),
            size(view.bytes),
            f"{counted(view.pending_rows, 'row')}, {counted(view.pending_files, 'file')}"
            if view.pending_files
            else "-",
            vector(dict(view.vector)),
        )
        for view in found.views
    ]
    headings = ("view", "group", "layout", "state", "rows", "files", "size", "pending", "vector")
    show_table(headings, rows, right=(3, 4, 5, 6))
