"""How a query is answered, for people."""

from typing import TYPE_CHECKING

import click

from viewkeeper.cli.tables import show_table

if TYPE_CHECKING:
    from viewkeeper.maintenance.explained_query import ExplainedSelect, QueryExplanation

MOST_UNFIT = 10
"""tables that cannot answer and are shown; --json has all of them"""


def show_query(found: "QueryExplanation") -> None:
    """Which tables answer, what else was considered, and the SQL that runs."""
    from viewkeeper.sql.layout import laid_out

    reads = [*(part.table for part in found.parts), *found.views]
    click.echo(f"answered from {', '.join(dict.fromkeys(reads)) or 'no table'}, at commit {found.commit}")
    for part in found.parts:
        _show_part(part)
    click.echo(f"\n{laid_out(found.sql)};")


def _show_part(part: "ExplainedSelect") -> None:
    click.echo(f"\nBy {', '.join(part.groups) or 'no groups'}: from {part.table}, at its state {part.state}")
    rows = [
        (
            one.table,
            one.lattice,
            ", ".join(one.joins) or "-",
            f"{one.rows:,}",
            f"{one.cost:,.0f}",
            "chosen" if one.chosen else one.reason,
        )
        for one in part.considered
    ]
    show_table(("table", "lattice", "joined with", "rows", "cost", ""), rows, right=(3, 4))
    unfit = [(one.table, " and ".join(one.missing)) for one in part.unfit]
    if unfit:
        click.echo("\nWhat cannot answer it" + (f", the first {MOST_UNFIT}" if len(unfit) > MOST_UNFIT else ""))
        show_table(("table", "because"), unfit[:MOST_UNFIT])
