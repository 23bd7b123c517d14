"""`viewkeeper explain`: how a view is kept fresh, and why so."""

import json
from dataclasses import asdict

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option


@click.command(short_help="How a view is kept fresh, and why so.")
@click.argument("text", metavar="VIEW", shell_complete=complete_views)
@warehouse_option
@json_option
def explain(text: str, path: str, as_json: bool) -> None:
    """Explain how VIEW is kept fresh: its algorithm, and the order in which changes are joined.

    Of a self-maintained view it shows what is stored and why so, what a change looks up there, and how it is read.

    Of a summary it shows what is stored, its place in the lattice, from what its changes are computed and why, the SQL
    of each step, what would be recomputed, and the figures of the last refresh. "expected" rows are what past refreshes
    had; the cost of a way is its rows, and once more for each join. Hidden columns and tables begin with _vk_.

    VIEW may also be a CREATE MATERIALIZED VIEW statement: nothing is created, and you see what would be. Or it is a
    query: then you see which stored tables answer it. No source is contacted.

    \b
    Examples:
      viewkeeper explain sales_by_city -w lake
      viewkeeper explain sales_by_city -w lake --json
      viewkeeper explain 'CREATE MATERIALIZED VIEW n AS SELECT city, COUNT(*) AS n FROM shop.sales GROUP BY 1' -w lake
    """
    with open_to_read(path, quiet=as_json) as warehouse:
        found = warehouse.explain(text)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    from viewkeeper.cli.explained import show_explanation
    from viewkeeper.cli.explained_query import show_query
    from viewkeeper.warehouse.summaries.explanation import Explanation

    if isinstance(found, Explanation):
        show_explanation(found)
    else:
        show_query(found)
