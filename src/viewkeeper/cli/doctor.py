"""`viewkeeper doctor`: what is missing or risky at a source, and what fixes it.

Exit code 0: all is well; 1: something is missing or risky.
"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.completing import complete_sources
from viewkeeper.cli.opening import json_option, open_to_maintain, open_to_read, warehouse_option
from viewkeeper.cli.progress import announced

if TYPE_CHECKING:
    from viewkeeper.project.sources import ProjectSource
    from viewkeeper.warehouse import Warehouse

EXIT_FINDINGS = 1


@click.command(short_help="What is missing or risky at a source.")
@click.argument("source", metavar="NAME|URL", shell_complete=complete_sources)
@warehouse_option
@click.option("--as", "name", metavar="NAME", help="The name that the source of a URL is to have.  [default: source]")
@click.option(
    "--table", "tables", metavar="TABLE", multiple=True, help="Of a URL only this table; repeatable.  [default: all]"
)
@json_option
@click.pass_context
def doctor(
    context: click.Context, source: str, path: str, name: str | None, tables: tuple[str, ...], as_json: bool
) -> None:
    """Look at a source that was added, or at one that might be, and say what is missing or risky.

    Each finding comes with the statement that fixes it. Nothing is changed at the source. In the folder of a project
    the name may be that of a source that was not applied yet. For a URL give the name too that the source is to have,
    and its tables: what is installed carries the name, and that of the warehouse, whose folder is made if it is not
    there yet. The password is found as by add-source. A table that cannot be captured is named and left out.

    Exit code 1 means that there are findings. With what is "missing" changes cannot be captured; a "warning" is a risk.

    \b
    Examples:
      viewkeeper doctor shop -w lake
      viewkeeper doctor 'postgresql://ann:${CRM_PASSWORD}@db/crm' --as crm --table people -w lake
    """
    from viewkeeper.errors import UsageError

    if "://" not in source:
        if name is not None:
            raise UsageError(f"{source} has a name already", "give --as with a URL")
        if tables:
            raise UsageError(f"{source} has its tables already", "give --table with a URL")
    from viewkeeper.sources.urls import shown

    if "://" not in source and (planned := _of_project(source, path, as_json)) is not None:
        # It is in the project, and not added yet: what applying the project needs is looked at.
        source, name, tables = planned.url, planned.name, planned.tables or ()
    with _opened(source, path, as_json) as warehouse, announced(f"looking at {shown(source)} ...", quiet=as_json):
        findings = warehouse.doctor(source, name, tables or None)
    if as_json:
        click.echo(json.dumps({"findings": [asdict(finding) for finding in findings]}))
    else:
        for finding in findings:
            click.echo(f"{'missing' if finding.fatal else 'warning'}: {finding.what}")
            click.echo("\n".join(f"    {line}" for line in finding.fix.splitlines()))
        if not findings:
            click.echo("all is well")
    context.exit(EXIT_FINDINGS if findings else 0)


def _of_project(source: str, path: str, quiet: bool) -> "ProjectSource | None":
    """The source of this name in the project of this folder, if the warehouse does not know it yet."""
    from viewkeeper.errors import NotAWarehouse
    from viewkeeper.project.finding import find_project_file

    try:
        with open_to_read(path, quiet=quiet) as warehouse:
            known = {one.name for one in warehouse.sources}
    except NotAWarehouse:
        known = set()
    if source.lower() in known or find_project_file() is None:
        return None
    from viewkeeper.project.project import Project

    return Project.load().sources.get(source)


def _opened(source: str, path: str, quiet: bool) -> "Warehouse":
    """The warehouse; made for a URL, as what is to be installed at a new source carries its identity."""
    from viewkeeper.errors import NotAWarehouse

    try:
        return open_to_read(path, quiet=quiet)
    except NotAWarehouse:
        if "://" not in source:
            raise
        return open_to_maintain(path, quiet=quiet, create=True)
