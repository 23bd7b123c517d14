"""`viewkeeper vacuum`: what is past its retention goes."""

import json
from collections.abc import Mapping
from dataclasses import asdict

import click

from viewkeeper.cli.opening import json_option, open_to_write, warehouse_option
from viewkeeper.cli.progress import announced


@click.command(short_help="Delete what is past its retention.")
@warehouse_option
@click.option(
    "--retention",
    metavar="DURATION",
    default="7 days",
    show_default=True,
    help="How long a state stays readable after it ceased to be the last. A view's own retention goes before.",
)
@click.option(
    "--grace", metavar="DURATION", default="1 hour", show_default=True, help="Files younger than this stay in any case."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@json_option
def vacuum(path: str, retention: str, grace: str, dry_run: bool, as_json: bool) -> None:
    """Forget states that are past their retention, and delete the files that only they need.

    What a reader has pinned stays. A DURATION is a number and a unit: '7 days', '12 hours', '90 s', '0'.

    \b
    Examples:
      viewkeeper vacuum -w lake --dry-run
      viewkeeper vacuum -w lake --retention '30 days'
    """
    from viewkeeper.cli.tables import counted, size
    from viewkeeper.durations import seconds

    # Before anything is opened: a mistake in them has nothing to do with the warehouse.
    keep, young = seconds(retention), seconds(grace)
    with (
        open_to_write(path, quiet=as_json) as warehouse,
        announced("looking for what is past its retention ...", quiet=as_json),
    ):
        done = warehouse.vacuum(keep, grace=young, dry_run=dry_run)
    if as_json:
        click.echo(json.dumps({**asdict(done), "dry_run": dry_run}))
        return
    what = f"{counted(done.files, 'file')} ({size(done.bytes)}) and {counted(done.commits, 'commit')}"
    click.echo(f"would delete {what}" if dry_run else f"deleted {what}")
    for line in oldest_lines(done.oldest, done.kept_longer, dry_run=dry_run):
        click.echo(line)


def oldest_lines(oldest: Mapping[str, int], kept_longer: Mapping[str, float], *, dry_run: bool) -> list[str]:
    """From which state on each view can be read. Hidden tables, which only viewkeeper knows of, are left out."""
    from viewkeeper.durations import in_words

    is_now = "would be" if dry_run else "is"
    own = {view: f"; its own retention is {in_words(kept)}" for view, kept in kept_longer.items()}
    return [
        f"{view}: state {state} {is_now} the oldest that can be read{own.get(view, '')}"
        for view, state in sorted(oldest.items())
        if not view.startswith("_vk_")
    ]
