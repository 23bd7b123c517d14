"""`viewkeeper add-source`: a database, lake or folder that views can be over."""

import json
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option

if TYPE_CHECKING:
    from viewkeeper.warehouse.warehouse import Warehouse


@click.command("add-source", short_help="Add a database, lake or folder as a source.")
@click.argument("name")
@click.argument("url")
@warehouse_option
@click.option(
    "--table", "tables", metavar="TABLE", multiple=True, help="Only this table; repeatable.  [default: all of them]"
)
@click.option(
    "--key",
    "keys",
    metavar="TABLE=COLUMN[,COLUMN]",
    multiple=True,
    help="The key of a table that has declared none; repeatable.",
)
@click.option("--install", is_flag=True, help="Put in place what capturing the changes needs, such as triggers.")
@json_option
def add_source(
    name: str, url: str, path: str, tables: tuple[str, ...], keys: tuple[str, ...], install: bool, as_json: bool
) -> None:
    """Add the database, lake or folder at URL as source NAME; its tables are then NAME.table in views.

    The folder of the warehouse is made if it is not there yet. Without --install nothing is changed at the source, and
    a missing piece is an error that names it. Adding a source again with other tables adds those.

    A password is never stored: write ${VARIABLE} into the URL, or no password at all and set
    VIEWKEEPER_PASSWORD_NAME (NAME in capitals), for this command and for later ones.

    \b
    Examples:
      viewkeeper add-source shop sqlite:///shop.db --install -w lake
      viewkeeper add-source crm 'postgresql://ann:${CRM_PASSWORD}@db/crm' --table people --install -w lake
      viewkeeper add-source legacy files:///var/exports --key prices=item,day -w lake
    """
    from viewkeeper.cli.relation_table import show_relations, source_as_json

    chosen = dict(map(_key, keys))
    with open_to_maintain(path, quiet=as_json, create=True) as warehouse:
        _add(warehouse, name, url, tables, chosen, install)
        (added,) = (source for source in warehouse.sources if source.name == name)
    if as_json:
        click.echo(json.dumps(source_as_json(added)))
        return
    click.echo(f"added {name}, {added.kind}, at {added.url}")
    show_relations([added])
    if not added.relations:
        click.echo("it has no tables")
    if url != added.url:
        variable = f"VIEWKEEPER_PASSWORD_{name.upper()}"
        click.echo(f"note: the password is not stored; later commands take it from {variable}", err=True)


def _key(option: str) -> tuple[str, tuple[str, ...]]:
    from viewkeeper.errors import UsageError

    table, _, columns = option.partition("=")
    names = tuple(column.strip() for column in columns.split(","))
    if not table or not all(names):
        raise UsageError(f"--key {option!r} names no key", "write --key table=column, or --key table=column,column")
    return table, names


def _add(
    warehouse: "Warehouse",
    name: str,
    url: str,
    tables: tuple[str, ...],
    keys: dict[str, tuple[str, ...]],
    install: bool,
) -> None:
    from viewkeeper.errors import SourceUnfit
    from viewkeeper.warehouse.known_sources import INSTALL

    try:
        warehouse.add_source(name, url, tables or None, keys=keys, install=install)
    except SourceUnfit as error:
        if not error.hint.startswith(INSTALL):
            raise
        raise SourceUnfit(
            error.detail,
            f"add it with --install; 'viewkeeper doctor URL --as {name}' shows the statements to run by hand instead",
        ) from error
