"""`viewkeeper changes`: what changed between two states of a view."""

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import open_to_read, warehouse_option
from viewkeeper.cli.results import data_is_piped, form_of, json_rows_option, write_result


@click.command(short_help="The signed rows between two states of a view.")
@click.argument("view", shell_complete=complete_views)
@warehouse_option
@click.option("--since", metavar="N", type=int, required=True, help="The state before the first change.")
@click.option("--until", metavar="N", type=int, help="The last state.  [default: the view's last]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    show_default="table",
    help="How rows are written.",
)
@json_rows_option
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), help="At most N rows.  [default: 100 in a table, else all]"
)
def changes(
    view: str, path: str, since: int, until: int | None, form: str | None, as_json: bool, limit: int | None
) -> None:
    """Show what changed in VIEW after state --since, state by state.

    _vk_weight says how often a row was inserted (or, below zero, deleted) by state _vk_state. Added to the view at
    --since they give the view at --until. Values are written as by 'viewkeeper query'.

    \b
    Examples:
      viewkeeper changes big_orders --since 41 -w lake
      viewkeeper changes big_orders --since 0 --until 10 --format csv
    """
    from viewkeeper.summary.statements import quoted

    form = form_of(form, as_json)
    quiet = as_json or data_is_piped(form, None)
    with open_to_read(path, quiet=quiet) as warehouse, warehouse.snapshot() as snapshot:
        found = snapshot.changes(view, since, until)
        *columns, weight, state = (found[quoted(name)] for name in found.columns)
        write_result(found.orderBy(state, *columns, weight), form, None, limit)
