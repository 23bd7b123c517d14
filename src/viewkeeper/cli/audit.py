"""`viewkeeper audit`: views compared with what their sources give, or files with what was written.

Exit code 0: all are right; 1: one is not, or is halted.
"""

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from viewkeeper.cli.completing import complete_views
from viewkeeper.cli.loading import load_shown
from viewkeeper.cli.opening import json_option, open_to_maintain, open_to_read, warehouse_option
from viewkeeper.cli.progress import announcing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from viewkeeper.maintenance.audits import Audit
    from viewkeeper.warehouse import Warehouse

EXIT_DIFFERENT = 1
SHOWN = 10


@click.command(short_help="Compare views with what their sources give.")
@click.argument("views", metavar="[VIEW]...", nargs=-1, shell_complete=complete_views)
@warehouse_option
@click.option("--all", "everything", is_flag=True, help="Every view over sources.")
@click.option("--files", "of_files", is_flag=True, help="The files of the warehouse, instead of views.")
@click.option(
    "--rows",
    metavar="N",
    type=click.IntRange(min=0),
    default=SHOWN,
    show_default=True,
    help="How many missing and how many extra rows are shown.",
)
@json_option
@click.pass_context
def audit(
    context: click.Context,
    views: tuple[str, ...],
    path: str,
    everything: bool,
    of_files: bool,
    rows: int,
    as_json: bool,
) -> None:
    """Compute each VIEW from its sources at the positions that it claims to reflect, and compare the two as bags.

    A summary of a view is compared with what that holds, which is audited with it. The sources may be written to
    meanwhile. Exit code 1 means that a view differs, or is halted; reload recreates it. Summaries for whose refresh
    changes wait are left out of --all. It needs the place of the writer: stop 'viewkeeper run' first.

    With --files no source is queried: every file that a committed state needs is read and compared with its checksum.
    Exit code 1 means that one is missing, cut short or changed. That works beside 'viewkeeper run'.

    \b
    Examples:
      viewkeeper audit big -w lake
      viewkeeper audit --all -w lake --json
      viewkeeper audit --files -w lake
    """
    from viewkeeper.cli.tables import counted
    from viewkeeper.errors import UsageError

    if of_files:
        if everything or views:
            raise UsageError("--files is about all files, and there are views", "leave out the views, or --files")
        context.exit(_audit_files(path, as_json=as_json))
    if everything == bool(views):
        raise UsageError(
            "there are views and --all" if everything else "there is no view to audit", "name views, or give --all"
        )
    with open_to_maintain(path, quiet=as_json) as warehouse:
        status = warehouse.status()
        waiting: list[str] = []
        if everything:
            waiting = warehouse.awaiting_refresh()
            views = tuple(view.view for view in status.views if view.algorithm is not None and view.view not in waiting)
        halted = {view: reason for view, reason in status.halted.items() if view in views}
        done = _audits(warehouse, [view for view in views if view not in halted], quiet=as_json)
    if as_json:
        audits = [_as_json(one, rows) for one in done]
        click.echo(json.dumps({"audits": audits, "halted": halted, "awaiting_refresh": waiting}, default=str))
    else:
        for one in done:
            _show(one, rows)
        for view, reason in halted.items():
            click.echo(f"{view}: not audited, it is halted: {reason}\n  the way out: viewkeeper reload {view}")
        for view in waiting:
            click.echo(f"{view}: not audited, changes wait for its refresh\n  first: viewkeeper refresh {view}")
        if len(done) > 1 and all(one.clean for one in done):
            click.echo(f"{counted(len(done), 'view')}, all right")
        if not views and not waiting:
            click.echo("there are no views over sources")
    context.exit(EXIT_DIFFERENT if halted or not all(one.clean for one in done) else 0)


def _audit_files(path: str, *, as_json: bool) -> int:
    from viewkeeper.cli.tables import counted

    with open_to_read(path, quiet=as_json) as warehouse:
        found = warehouse.audit_files()
    if as_json:
        wrong = [{"file": name, "why": why} for name, why in found.wrong.items()]
        click.echo(json.dumps({"files": found.files, "wrong": wrong, "without_checksum": found.without_checksum}))
    else:
        for name, why in found.wrong.items():
            click.echo(f"{name}: WRONG: {why}")
        click.echo(f"{counted(found.files, 'file')}, " + (f"{len(found.wrong)} wrong" if found.wrong else "all right"))
        if found.without_checksum:
            click.echo(f"{found.without_checksum} of an earlier version have no checksum, and were only read")
        if found.wrong:
            click.echo("the way out: put them back from a backup, or viewkeeper reload the view that they belong to")
    return 0 if found.clean else EXIT_DIFFERENT


def _audits(warehouse: "Warehouse", views: "Sequence[str]", *, quiet: bool) -> "list[Audit]":
    with announcing(quiet=quiet) as say, load_shown(warehouse, quiet=quiet):
        return warehouse.audits(*views, watch=lambda some: say(f"auditing {', '.join(some)} ..."))


def _show(audit: "Audit", rows: int) -> None:
    from viewkeeper.cli.tables import counted, vector

    at = f"state {audit.state}, {vector(dict(audit.vector))}"
    if audit.clean:
        click.echo(f"{audit.view}: right, {counted(audit.rows, 'distinct row')} at {at}")
        for relation, facts in audit.broken_foreign_keys:
            click.echo(f"  {counted(facts, 'fact')} without a row in {relation}, which a declared foreign key promises")
        return
    missing, extra = len(audit.missing), len(audit.extra)
    click.echo(f"{audit.view}: WRONG at {at}: {counted(missing, 'row')} missing, {counted(extra, 'row')} too many")
    for heading, found in (("missing", audit.missing), ("extra", audit.extra)):
        for row, weight in sorted(found, key=repr)[:rows]:
            click.echo(f"  {heading} {weight} x {row!r}")
        if len(found) > rows:
            click.echo(f"  and {len(found) - rows} more {heading}")
    if audit.below:
        click.echo(f"  what it reads is wrong: {', '.join(audit.below)}; that has to be reloaded first")
    if audit.structures:
        click.echo(f"  what is stored to maintain it is not what it should be: {', '.join(audit.structures)}")
    click.echo(f"  the way out: viewkeeper reload {audit.view}")


def _as_json(audit: "Audit", rows: int) -> dict[str, Any]:
    return {
        "view": audit.view,
        "right": audit.clean,
        "state": audit.state,
        "vector": dict(audit.vector),
        "distinct_rows": audit.rows,
        "wrong_structures": list(audit.structures),
        "wrong_below": list(audit.below),
        "broken_foreign_keys": dict(audit.broken_foreign_keys),
        **{
            name: {
                "rows": len(found),
                "sample": [{"row": [*map(_in_json, row)], "times": times} for row, times in found[:rows]],
            }
            for name, found in (("missing", audit.missing), ("extra", audit.extra))
        },
    }


def _in_json(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value
