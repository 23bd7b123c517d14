"""`viewkeeper cube`: the summaries of a cube that are worth storing, chosen and created."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.loading import load_shown
from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option

if TYPE_CHECKING:
    from viewkeeper.maintenance.cubes import CubeChoice


@click.command(short_help="Choose the summaries of a cube that are worth storing, and create them.")
@click.option("--fact", required=True, metavar="TABLE", help="The table, as source.table, or a view.")
@click.option(
    "--dimensions", required=True, metavar="COLUMNS", help="Columns of the fact, or table.column, with commas between."
)
@click.option(
    "--measures", required=True, metavar="ITEMS", help="As in SELECT, each with a name: 'COUNT(*) AS n, SUM(qty) AS q'."
)
@click.option(
    "--space-budget", type=click.IntRange(min=0), metavar="ROWS", help="Rows of all tables, the top included."
)
@click.option("--count", type=click.IntRange(min=0), metavar="N", help="Tables beside the top.")
@click.option("--name", metavar="PREFIX", help="What the names of the tables begin with.  [default: that of the fact]")
@click.option("--refresh", metavar="WHEN", help="continuous, manual, or 'every 5 minutes'.  [default: continuous]")
@click.option(
    "--replace",
    multiple=True,
    metavar="TABLE",
    help="A summary that goes in the same commit, such as one of the cube before. May be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Choose, and create nothing.")
@warehouse_option
@json_option
def cube(
    fact: str,
    dimensions: str,
    measures: str,
    space_budget: int | None,
    count: int | None,
    name: str | None,
    refresh: str | None,
    replace: tuple[str, ...],
    dry_run: bool,
    path: str,
    as_json: bool,
) -> None:
    """Choose the summaries of a cube that are worth storing, and create them.

    The points of the cube are all ways to group by the dimensions. Columns of a dimension table are joined along
    declared foreign keys, or by columns that are called like its key; columns that a declared hierarchy orders are
    levels of one dimension (viewkeeper add-source --hierarchy). The sizes of all points are counted from stored tables,
    or at the source. Then points are chosen greedily: each time the one that saves the most rows, if every point is
    requested once. The finest point is always stored. All tables come in one commit, in which those in --replace go:
    readers have these until then.

    Queries over the tables of the source are answered from what is stored: viewkeeper query.

    \b
    Examples:
      viewkeeper cube --fact retail.pos --dimensions storeID,city,region,itemID,category,date \\
        --measures 'COUNT(*) AS n, SUM(qty) AS q' --count 5 --dry-run -w lake
      viewkeeper cube --fact retail.pos --dimensions stores.city,date --measures 'SUM(qty) AS q' --space-budget 1000000
    """
    names = [one.strip() for one in dimensions.split(",") if one.strip()]

    def tell(line: str) -> None:
        if not as_json:
            click.echo(line, err=True)

    with open_to_maintain(path, quiet=as_json) as warehouse, load_shown(warehouse, "the cube", quiet=as_json):
        choice = warehouse.cube(
            fact,
            names,
            measures,
            space_budget=space_budget,
            count=count,
            name=name,
            refresh=refresh,
            replace=replace,
            dry_run=dry_run,
            watch=tell,
        )
    if as_json:
        click.echo(json.dumps({**asdict(choice), "space": choice.space}))
        return
    _show(choice)


def _show(choice: "CubeChoice") -> None:
    from viewkeeper.cli.tables import show_table

    sizes = "counted" if choice.exact else "estimated"
    click.echo(f"cube       {choice.points} points over {choice.fact}, sizes {sizes}")
    click.echo(
        f"reading    {choice.cost_of_top:,.0f} rows with the top alone, {choice.cost_of_all:,.0f} with all points"
    )
    hidden = f", {choice.hidden_rows:,} of them in a hidden table" if choice.hidden_rows else ""
    click.echo(f"space      {choice.space:,} rows{hidden}")
    click.echo()
    rows = [
        [
            view.name,
            ", ".join(view.attributes) or "none",
            f"{view.estimated_rows if view.rows is None else view.rows:,}",
            f"{view.benefit:,.0f}" if view.benefit else "-",
            f"{view.share:.0%}" if view.benefit else "-",
            f"{view.cost_after:,.0f}",
        ]
        for view in choice.views
    ]
    show_table(["table", "groups", "rows", "benefit", "share", "rows read after"], rows, range(2, 6))
    click.echo()
    if choice.created:
        click.echo(f"created {len(choice.views)} tables")
    else:
        click.echo("nothing was created; these statements would be run:")
        for view in choice.views:
            click.echo(f"{view.sql};")
