"""`viewkeeper create-view`: a view over sources, loaded and from then on maintained."""

import json
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.loading import load_shown
from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option
from viewkeeper.cli.sql_text import sql_text

if TYPE_CHECKING:
    from viewkeeper.explaining.summary_explanation import Explanation
    from viewkeeper.planner.altering.alteration import Alteration
    from viewkeeper.warehouse import Warehouse

_DONE = {"create": "created", "alter": "altered", "reload": "replaced"}


@click.command("create-view", short_help="Create a view over sources, and load it.")
@click.argument("sql", metavar="[CREATE...]", required=False)
@warehouse_option
@click.option("--file", "file", metavar="FILE", type=click.Path(), help="Read the definition from a file.")
@click.option("--replace", is_flag=True, help="If the view is there, make it what the definition says.")
@json_option
def create_view(sql: str | None, path: str, file: str | None, replace: bool, as_json: bool) -> None:
    """Create a view: CREATE MATERIALIZED VIEW name [TBLPROPERTIES (...)] AS SELECT ..., in Spark's dialect.

    Give it as one argument, as - for standard input, or with --file. Tables are named source.table; a bare name is
    another view. The view is loaded while its sources are written to, and reflects them exactly at one position each.
    Properties are 'consistency', 'algorithm' and its options, 'group', 'retention' and 'global_timeout':
    docs/reference/properties.md. With 'storage' a join is refreshed by what is stored for it, and no source is queried:
    docs/self-maintained-views.md.

    With GROUP BY, DISTINCT or an aggregate it is a summary table, over one fact and dimensions along their keys. Its
    properties are 'consistency', 'refresh', 'group', 'retention', 'global_timeout', 'minmax' and 'core':
    docs/summary-tables.md. CUBE, ROLLUP and GROUPING SETS make a family: a table for each set of groups, all read by
    the name of the view.

    With --replace, or CREATE OR REPLACE, a view that is there is changed: in place where its rows stay the same, else
    recreated beside the old one, with the views that read it, and put in its place by one commit: docs/live-views.md.
    CREATE MATERIALIZED VIEW IF NOT EXISTS leaves a view of that name as it is.

    \b
    Examples:
      viewkeeper create-view 'CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders WHERE amount > 99' -w lake
      viewkeeper create-view 'CREATE MATERIALIZED VIEW n AS SELECT city, COUNT(*) AS n FROM shop.orders GROUP BY city'
      viewkeeper create-view --file named.sql -w lake
      viewkeeper create-view --replace 'CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders WHERE amount > 50'
    """
    text = sql_text(sql, file, "view")
    with open_to_maintain(path, quiet=as_json) as warehouse:
        before = warehouse.status()
        with load_shown(warehouse, quiet=as_json):
            done = _create(warehouse, text, replace=replace)
        name = done.view
        made = [view for view in warehouse.status().views if name in (view.view, view.family)]
        chosen = _chosen(warehouse, name)
    anew = (name, *done.dependants) if done.kind == "reload" else ()
    lost = {one: count for one in anew if (count := before.readable_states(one))}
    first, rows = made[0], sum(view.rows for view in made)
    if as_json:
        told = {what: getattr(first, what) for what in ("group", "algorithm", "consistency", "state")}
        members = {"tables": [view.view for view in made]} if first.family else {}
        storage = {"storage": chosen.storage, "storage_reasons": chosen.storage_reasons} if chosen is not None else {}
        plain = done.kind == "create" and not done.reasons
        changed = {"done": done.kind, "reasons": done.reasons, "dependants": done.dependants, "states_lost": lost}
        what = {} if plain else changed
        click.echo(json.dumps({"view": name, **told, "rows": rows, **members, **storage, **what}))
        return
    from viewkeeper.cli.tables import counted, row_count

    if done.kind == "keep":
        click.echo(f"kept {name}: {'; '.join(done.reasons) or 'the definition means what it meant'}")
        return
    if done.kind != "create":
        click.echo(f"{'altered in place' if done.kind == 'alter' else 'recreated'}: {'; '.join(done.reasons)}")
    if done.dependants:
        click.echo(f"recreated with it: {', '.join(done.dependants)}")
    for one, count in lost.items():
        click.echo(f"{counted(count, 'earlier state')} of {one} can no longer be read")
    tables = f", {counted(len(made), 'table')} ({', '.join(view.view for view in made)})" if first.family else ""
    shown = row_count(rows, selects=any(view.selects for view in made))
    click.echo(
        f"{_DONE[done.kind]} {name}{tables} with {shown}, in group {first.group}: "
        f"{first.algorithm}, {first.consistency} consistency"
    )
    if chosen is not None:
        click.echo(f"storage {chosen.storage}: {'; '.join(chosen.storage_reasons)}")


def _create(warehouse: "Warehouse", text: str, *, replace: bool) -> "Alteration":
    """Create a view, or replace or leave the one that exists; what was done."""
    from viewkeeper.planner.altering.alteration import Alteration
    from viewkeeper.sql.create_clauses import IfThere, read_create

    if_there = read_create(text).if_there
    if replace or if_there is IfThere.REPLACE:
        return warehouse.alter_view(text)
    before = set(warehouse.views)
    name = warehouse.create_view(text)
    if name in before:
        return Alteration(name, "keep", ("there is a view of that name, and IF NOT EXISTS leaves it as it is",))
    return Alteration(name, "create")


def _chosen(warehouse: "Warehouse", name: str) -> "Explanation | None":
    """How a view is kept, if its storage was left to viewkeeper."""
    from viewkeeper.explaining.summary_explanation import Explanation

    found = warehouse.explain(name)
    return found if isinstance(found, Explanation) and found.storage_asked == "auto" else None
