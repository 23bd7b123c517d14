"""`viewkeeper create-view`: a view over sources, loaded and from then on maintained."""

import json
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.loading import load_shown
from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option
from viewkeeper.cli.sql_text import sql_text

if TYPE_CHECKING:
    from viewkeeper.warehouse.summaries.explanation import Explanation
    from viewkeeper.warehouse.warehouse import Warehouse


@click.command("create-view", short_help="Create a view over sources, and load it.")
@click.argument("sql", metavar="[CREATE...]", required=False)
@warehouse_option
@click.option("--file", "file", metavar="FILE", type=click.Path(), help="Read the definition from a file.")
@json_option
def create_view(sql: str | None, path: str, file: str | None, as_json: bool) -> None:
    """Create a view: CREATE MATERIALIZED VIEW name [TBLPROPERTIES (...)] AS SELECT ..., in Spark's dialect.

    Give it as one argument, as - for standard input, or with --file. Tables are named source.table; a bare name is
    another view. The view is loaded while its sources are written to, and reflects them exactly at one position each.
    Properties are 'consistency', 'algorithm', 'group', 'retention' and 'nested_depth': docs/live-views.md. With
    'storage' a join is refreshed by what is stored for it, and no source is asked: docs/self-maintained-views.md.

    With GROUP BY, DISTINCT or an aggregate it is a summary table, over one fact and dimensions along their keys. Its
    properties are 'consistency', 'refresh', 'group', 'retention', 'minmax' and 'core': docs/summary-tables.md. CUBE,
    ROLLUP and GROUPING SETS make a family: a table for each set of groups, all read by the name of the view.

    \b
    Examples:
      viewkeeper create-view 'CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders WHERE amount > 99' -w lake
      viewkeeper create-view 'CREATE MATERIALIZED VIEW n AS SELECT city, COUNT(*) AS n FROM shop.orders GROUP BY city'
      viewkeeper create-view --file named.sql -w lake
    """
    text = sql_text(sql, file, "view")
    with open_to_maintain(path, quiet=as_json) as warehouse:
        with load_shown(warehouse, quiet=as_json):
            name = warehouse.create_view(text)
        made = [view for view in warehouse.status().views if name in (view.view, view.family)]
        chosen = _chosen(warehouse, name)
    first, rows = made[0], sum(view.rows for view in made)
    if as_json:
        told = {what: getattr(first, what) for what in ("group", "algorithm", "consistency", "state")}
        members = {"tables": [view.view for view in made]} if first.family else {}
        storage = {"storage": chosen.storage, "storage_reasons": chosen.storage_reasons} if chosen is not None else {}
        click.echo(json.dumps({"view": name, **told, "rows": rows, **members, **storage}))
        return
    from viewkeeper.cli.tables import counted

    tables = f", {counted(len(made), 'table')} ({', '.join(view.view for view in made)})" if first.family else ""
    click.echo(
        f"created {name}{tables} with {counted(rows, 'row')}, in group {first.group}: "
        f"{first.algorithm}, {first.consistency} consistency"
    )
    if chosen is not None:
        click.echo(f"storage {chosen.storage}: {'; '.join(chosen.storage_reasons)}")


def _chosen(warehouse: "Warehouse", name: str) -> "Explanation | None":
    """How a view is kept, if its storage was left to viewkeeper."""
    from viewkeeper.warehouse.summaries.explanation import Explanation

    found = warehouse.explain(name)
    return found if isinstance(found, Explanation) and found.storage_asked == "auto" else None
