"""The relations of sources, for people and for programs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewkeeper.lake.log.source_files import SourceDefinition


def show_relations(sources: "Iterable[SourceDefinition]") -> None:
    """A line for each relation: its key, and its columns with their types; then what was declared besides."""
    import click

    from viewkeeper.cli.tables import show_table

    sources = tuple(sources)

    rows = [
        (
            name,
            ", ".join(relation.key or ()) or "-",
            ", ".join(f"{column} {type}" for column, type in zip(relation.columns, relation.types, strict=True)),
        )
        for source in sources
        for name, relation in source.relations.items()
    ]
    if rows:
        show_table(("relation", "key", "columns"), rows)
    for source in sources:
        for table, chains in source.hierarchies.items():
            for levels in chains:
                click.echo(f"hierarchy of {source.name}.{table.removeprefix(f'{source.name}.')}: {' → '.join(levels)}")
        for child, parent in source.foreign_keys:
            click.echo(f"foreign key: {source.name}.{child.removeprefix(f'{source.name}.')} → {parent}")


def source_as_json(source: "SourceDefinition") -> dict[str, Any]:
    """What is known of a source. The URL has no password."""
    return {
        "name": source.name,
        "kind": source.kind,
        "url": source.url,
        "installed": source.installed,
        "global_transactions": source.global_transactions,
        "transactions": str(source.transactions),
        "relations": {
            name: {
                "columns": dict(zip(relation.columns, relation.types, strict=True)),
                "key": None if relation.key is None else list(relation.key),
            }
            for name, relation in source.relations.items()
        },
        "foreign_keys": [list(pair) for pair in source.foreign_keys],
        "hierarchies": {table: list(map(list, chains)) for table, chains in source.hierarchies.items()},
    }
