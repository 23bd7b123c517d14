"""`viewkeeper add-source`: a database, lake or folder that views can be over."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.opening import json_option, open_to_maintain, warehouse_option
from viewkeeper.errors import SourceUnfit, UsageError

if TYPE_CHECKING:
    from viewkeeper.summary.hierarchies import Chains
    from viewkeeper.warehouse import Warehouse


MOST_STATEMENTS = 6
"""lines of statements that an error still shows; a server's settings are a few, the triggers of SQLite are not"""


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
@click.option(
    "--hierarchy",
    "hierarchies",
    metavar="TABLE=COLUMN,COLUMN[,...]",
    multiple=True,
    help="Columns of a dimension that determine each other, the finest first; repeatable, also for one table.",
)
@click.option(
    "--foreign-key",
    "foreign_keys",
    metavar="TABLE.COLUMN=SOURCE.TABLE.COLUMN",
    multiple=True,
    help="A column that leads to the key of a table, in which each value is found: relied upon, not enforced; "
    "repeatable.",
)
@click.option(
    "--transactions",
    type=click.Choice(["local", "single"]),
    help="single: each of them is a single update, which strobe and c-strobe rely on.  [default: as before, or local]",
)
@click.option("--install", is_flag=True, help="Put in place what capturing the changes needs, such as triggers.")
@json_option
def add_source(
    name: str,
    url: str,
    path: str,
    tables: tuple[str, ...],
    keys: tuple[str, ...],
    hierarchies: tuple[str, ...],
    foreign_keys: tuple[str, ...],
    transactions: str | None,
    install: bool,
    as_json: bool,
) -> None:
    """Add the database, lake or folder at URL as source NAME; its tables are then NAME.table in views.

    The folder of the warehouse is made if it is not there yet. Without --install nothing is changed at the source, and
    a missing piece is an error that names it. Adding a source again with other tables adds those; what was declared
    before stays.

    A hierarchy stores=storeID,city,region says that every store is in one city and every city in one region. Summaries
    are computed from each other along it. It is checked when a summary is made and whenever the table changes. Several
    of one table are a partial order: days=day,month,year and days=day,week. --hierarchy stores= withdraws those of it.

    A foreign key pos.itemID=retail.items.itemID promises that every sale is of an item that is there (RELY, in other
    systems). Summaries that do not join items are then computed from those that do. It is not enforced: changes that
    break it are found, and computed without it. --foreign-key pos.itemID= withdraws it.

    Transactions that were declared single and are not halt the views that rely on it: those by strobe and c-strobe.

    A password is never stored: write ${VARIABLE} into the URL, or no password at all and set
    VIEWKEEPER_PASSWORD_NAME (NAME in capitals), for this command and for later ones.

    \b
    Examples:
      viewkeeper add-source shop sqlite:///shop.db --install -w lake
      viewkeeper add-source crm 'postgresql://ann:${CRM_PASSWORD}@db/crm' --table people --install -w lake
      viewkeeper add-source legacy files:///var/exports --key prices=item,day -w lake
      viewkeeper add-source retail sqlite:///retail.db --hierarchy stores=storeID,city,region --install -w lake
    """
    from viewkeeper.cli.relation_table import show_relations, source_as_json

    declared = _Declared(
        dict(map(_key, keys)), _hierarchies(hierarchies), list(map(_foreign_key, foreign_keys)), transactions
    )
    with open_to_maintain(path, quiet=as_json, create=True) as warehouse:
        _add(warehouse, name, url, tables, declared, install)
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


@dataclass(frozen=True)
class _Declared:
    """What the database does not say by itself."""

    keys: dict[str, tuple[str, ...]]
    hierarchies: "dict[str, Chains]"
    foreign_keys: list[tuple[str, str]]
    transactions: str | None


def _key(option: str) -> tuple[str, tuple[str, ...]]:
    table, columns = _table_and_columns(option)
    if not table or not all(columns):
        raise UsageError(f"--key {option!r} names no key", "write --key table=column, or --key table=column,column")
    return table, columns


def _hierarchies(options: tuple[str, ...]) -> "dict[str, Chains]":
    """The chains of each table; none for a table whose hierarchies are withdrawn."""
    found: dict[str, Chains] = {}
    for written, columns in map(_hierarchy, options):
        table = next((known for known in found if known.casefold() == written.casefold()), written)
        if table in found and not (columns and found[table]):
            raise UsageError(
                f"--hierarchy {table}= withdraws the hierarchies of {table}, and another option declares one",
                "withdraw them in a command of its own",
            )
        found[table] = (*found.get(table, ()), columns) if columns else ()
    return found


def _hierarchy(option: str) -> tuple[str, tuple[str, ...]]:
    table, columns = _table_and_columns(option)
    if table and "=" in option and columns == ("",):
        return table, ()
    if not table or not all(columns) or len(columns) < 2:
        raise UsageError(
            f"--hierarchy {option!r} names no hierarchy",
            "write --hierarchy table=column,column, the finest first, such as stores=storeID,city,region",
        )
    return table, columns


def _foreign_key(option: str) -> tuple[str, str]:
    child, given, parent = (part.strip() for part in option.partition("="))
    if given and not parent and child.count(".") >= 1 and all(child.split(".")):
        return child, ""
    if not all(child.split(".")) or child.count(".") < 1 or not all(parent.split(".")) or parent.count(".") < 2:
        raise UsageError(
            f"--foreign-key {option!r} names no foreign key",
            "write --foreign-key table.column=source.table.column, such as orders.cust=crm.people.id",
        )
    return child, parent


def _table_and_columns(option: str) -> tuple[str, tuple[str, ...]]:
    table, _, columns = option.partition("=")
    return table.strip(), tuple(column.strip() for column in columns.split(","))


def _add(
    warehouse: "Warehouse",
    name: str,
    url: str,
    tables: tuple[str, ...],
    declared: _Declared,
    install: bool,
) -> None:
    from viewkeeper.planner.known_sources import INSTALL

    try:
        warehouse.add_source(
            name,
            url,
            tables or None,
            keys=declared.keys,
            foreign_keys=declared.foreign_keys,
            hierarchies=declared.hierarchies,
            transactions=declared.transactions,
            install=install,
        )
    except SourceUnfit as error:
        if not error.hint.startswith(INSTALL):
            raise
        by_hand = error.hint.removeprefix(INSTALL)
        if by_hand.count("\n") > MOST_STATEMENTS:
            chosen = "".join(f" --table {table}" for table in tables)
            by_hand = f"; 'viewkeeper doctor URL --as {name}{chosen}' shows the statements to run by hand instead"
        raise SourceUnfit(error.detail, f"add it with --install{by_hand}") from error
