"""An explanation of a self-maintained view, for people."""

from typing import TYPE_CHECKING

import click

from viewkeeper.cli.tables import show_table, size

if TYPE_CHECKING:
    from viewkeeper.explaining.storage_explanation import Reading, RefreshEngines, RowIdentity, SelfMaintained


def show_self_maintained(found: "SelfMaintained") -> None:
    """What is stored, what each change looks up there, and how the view is read and refreshed."""
    click.echo("\nStored for it")
    rows = [
        (
            one.table,
            one.holds,
            "-" if one.rows is None else f"{one.rows:,}",
            "-" if one.bytes is None else size(one.bytes),
            "; or ".join(", ".join(by) for by in one.looked_up_by),
        )
        for one in found.structures
    ]
    show_table(("table", "holds", "rows", "size", "looked up by"), rows, right=(2, 3))
    click.echo("\nWhat a change looks up: no source is queried")
    lookups = [
        (change.relation if number == 0 else "", lookup.finds, lookup.table, ", ".join(lookup.by))
        for change in found.changes
        for number, lookup in enumerate(change.lookups)
    ]
    show_table(("a change of", "finds", "in", "by"), lookups)
    click.echo()
    for identity in found.identities:
        click.echo(f"ids       {_identity(identity)}")
    click.echo(f"read      {_reading(found.reading)}")
    for line in _engines(found.engines):
        click.echo(f"refresh   {line}")


def _identity(identity: "RowIdentity") -> str:
    if identity.numbered:
        return f"rows of {identity.relation} have no key, and get numbers as they come: {identity.by[0]}"
    return f"rows of {identity.relation} by their key: {', '.join(identity.by)}"


def _reading(reading: "Reading") -> str:
    if not reading.copies:
        return f"from one table, {reading.table}"
    return (
        f"pointers in {reading.table} are dereferenced on read, in {', '.join(reading.copies)}; the rows are kept from "
        f"read {reading.kept_from_read} of a state on"
    )


def _engines(engines: "RefreshEngines") -> list[str]:
    if engines.always_spark:
        return ["by Spark: the view has an expression that only Spark evaluates"]
    return [
        f"in Python up to {engines.python_up_to:,} changed rows, or state by state if there are several",
        f"in Arrow up to {engines.arrow_up_to:,} changed rows",
        f"by Spark beyond; it also looks rows up in tables of more than {engines.driver_table_rows:,} rows",
    ]
