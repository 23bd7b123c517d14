"""`viewkeeper lattice`: the summaries of a warehouse, and what is computed from what."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option
from viewkeeper.errors import UsageError

if TYPE_CHECKING:
    from viewkeeper.explaining.drawn import DrawnLattice


@click.command(short_help="The lattice of summaries: what is computed from what.")
@warehouse_option
@click.option(
    "--view",
    metavar="VIEW",
    shell_complete=complete_views,
    help="Only the lattice of this summary.  [default: all of them]",
)
@click.option("--svg", "file", metavar="FILE", type=click.Path(), help="Draw it, into a file.")
@json_option
def lattice(path: str, view: str | None, file: str | None, as_json: bool) -> None:
    """Show the lattices of summary tables, each table below what its changes are computed from.

    "⋈ stores" is a join with that dimension, "with region" an attribute that the summary-delta above carries for it.
    "or from" lists other ways; those that hold only if every foreign key finds its row are never taken. "last" is what
    the last refresh did: rows that came (+), changed (~) and went (−). Tables in [hidden] serve others.

    With --svg one lattice is drawn: if there are several, say with --view which one. No source is contacted and no
    Spark started.

    \b
    Examples:
      viewkeeper lattice -w lake
      viewkeeper lattice --view sales_by_city --svg lattice.svg -w lake
    """
    from viewkeeper.cli.results import check_output, write_text

    target = check_output("svg", file) if file is not None else None
    with open_to_read(path, quiet=as_json) as warehouse:
        found = warehouse.lattice(view)
    if view is not None and not found:
        raise UsageError(
            f"{view} is not a summary, and in no lattice", f"viewkeeper explain {view} says how it is maintained"
        )
    if target is not None:
        write_text(_only(found).svg, target)
    if as_json:
        click.echo(json.dumps({"lattices": [asdict(one) for one in found]}))
    elif target is not None:
        click.echo(f"drawn: {target}")
    else:
        _show(found)


def _only(found: "list[DrawnLattice]") -> "DrawnLattice":
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError("there are no summaries to draw", "viewkeeper create-view, with a GROUP BY, makes one")
    named = ", ".join(next(node.name for node in one.nodes if not node.hidden) for one in found)
    raise UsageError(f"there are {len(found)} lattices, and one is drawn", f"choose with --view one of: {named}")


def _show(found: "list[DrawnLattice]") -> None:
    if not found:
        click.echo("there are no summaries")
    for number, one in enumerate(found):
        click.echo(f"{chr(10) * (number > 0)}{one.name}")
        click.echo(one.text, nl=False)
