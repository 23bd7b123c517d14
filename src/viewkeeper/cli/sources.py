"""`viewkeeper sources`: what views can be over."""

import json

import click

from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option


@click.command(short_help="The sources of a warehouse, and their relations.")
@warehouse_option
@json_option
def sources(path: str, as_json: bool) -> None:
    """List the sources that were added, and their relations as they were then.

    No source is contacted. "installed" says whether viewkeeper put something there that remove-source takes away again;
    "transactions" whether each is a single update, as was declared (single), may have several (local), or may span
    sources (global).

    \b
    Examples:
      viewkeeper sources -w lake
      viewkeeper sources -w lake --json
    """
    from viewkeeper.cli.relation_table import show_relations, source_as_json
    from viewkeeper.cli.tables import show_table

    with open_to_read(path, quiet=as_json) as warehouse:
        found = warehouse.sources
    if as_json:
        click.echo(json.dumps({"sources": [source_as_json(source) for source in found]}))
        return
    if not found:
        click.echo("no sources yet")
        return
    rows = [
        (
            source.name,
            source.kind,
            "yes" if source.installed else "no",
            "global" if source.global_transactions else str(source.transactions),
            source.url,
        )
        for source in found
    ]
    show_table(("source", "kind", "installed", "transactions", "url"), rows)
    click.echo()
    show_relations(found)
