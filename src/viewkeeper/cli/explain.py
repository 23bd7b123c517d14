"""`viewkeeper explain`: how a view is maintained, and why so."""

import json
from dataclasses import asdict

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option


@click.command(short_help="How a view is maintained, and why.")
@click.argument("text", metavar="VIEW", shell_complete=complete_views)
@click.option("--full", is_flag=True, help="Also what is stored, the order of the joins, the statements, the figures.")
@warehouse_option
@json_option
def explain(text: str, full: bool, path: str, as_json: bool) -> None:
    """Explain VIEW in plain words: what happens when a row changes, why it is kept at this level, by this algorithm and
    with this storage, what a change of each relation costs, and what you could change to make it cheaper or stronger.

    Costs are those of a transaction that comes alone; of many that come together each costs less. Rows are those that
    come back for each changed row. "an hour" is how often the source has changed, as far as the commits tell.

    With --full it also shows what is stored and what a change looks up there, the order of the joins; of a summary its
    place in the lattice, from what its changes are computed and why, the SQL of each step, what would be recomputed,
    and the figures of the last refresh. "expected" rows are what past refreshes had; the cost of a way is its rows, and
    once more for each join. Hidden columns and tables begin with _vk_.

    VIEW may also be a CREATE MATERIALIZED VIEW statement: nothing is created, and you see what would be. Or it is a
    query: then you see which stored tables answer it. No source is contacted.

    \b
    Examples:
      viewkeeper explain sales_by_city -w lake
      viewkeeper explain sales_by_city -w lake --full
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
    from viewkeeper.explaining.summary_explanation import Explanation

    if isinstance(found, Explanation):
        show_explanation(found, full=full)
    else:
        show_query(found)
