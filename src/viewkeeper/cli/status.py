"""`viewkeeper status`: the warehouse at its last commit, and each view.

Exit code 0; with --check 1 if something is wrong.
"""

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.opening import json_option, open_to_read, warehouse_option
from viewkeeper.clock import now

if TYPE_CHECKING:
    from viewkeeper.mediator.report import Report
    from viewkeeper.serving.running import Running
    from viewkeeper.serving.status import Status, ViewStatus


EXIT_WRONG = 1


@click.command(short_help="What a warehouse holds, view by view.")
@warehouse_option
@click.option("--check", is_flag=True, help="Contact the sources, and exit with 1 if something is wrong.")
@click.option(
    "--patience",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="With --check: how long all sources together have to answer.",
)
@json_option
@click.pass_context
def status(context: click.Context, path: str, check: bool, patience: float, as_json: bool) -> None:
    """Show what a warehouse holds: per view its last state, where the sources are in it, its size, and how it is kept.

    "rows" and "size" are of what is stored: of a self-maintained view, in the hidden tables that it is computed from.
    "pending" counts the signed rows that were appended since the last compaction, and their files. A family is the
    tables of a CUBE, ROLLUP or GROUPING SETS, which are read by one name. Hidden tables are stored for the
    views; --json has each of them, and everything as it is stored: here positions are shown without leading zeros. No
    source is contacted: while 'viewkeeper run' is at work, what it said last is shown, with its age. A missing part of
    a global transaction that views wait for is named, and so is one that was given up.

    With --check the exit code is 1 if a view is halted, a group has failed, a file is missing, a part of a global
    transaction has not come for longer than a second, or a source does not answer; "problems" in --json has each, with
    the way out.

    \b
    Examples:
      viewkeeper status -w lake
      viewkeeper status -w lake --check --json
    """
    with open_to_read(path, quiet=as_json) as warehouse:
        found = warehouse.status(patience=patience if check else None)
    if as_json:
        click.echo(json.dumps(asdict(found)))
    else:
        _show(found)
    context.exit(EXIT_WRONG if check and found.problems else 0)


def _show(found: "Status") -> None:
    from viewkeeper.cli.report_words import failed, problem_lines
    from viewkeeper.cli.tables import counted, moment, show_table, size
    from viewkeeper.cli.wait_words import wait_lines

    click.echo(f"warehouse  {found.path}")
    click.echo(f"commit     {found.commit}, made {moment(found.time)}; {found.commits} retained")
    click.echo(f"readers    {found.readers} pinned")
    if found.running is not None:
        click.echo(f"running    {_who(found.running)}")
    if not found.views and not found.hidden:
        click.echo("views      none yet")
    if found.views:
        click.echo()
        _show_views(found.views)
    _show_families((*found.views, *found.hidden))
    if found.hidden:
        click.echo(f"\n{counted(len(found.hidden), 'hidden table')}, {size(sum(view.bytes for view in found.hidden))}")
    _show_kept(found.views)
    at_work = found.running.report if found.running is not None and found.running.alive else None
    for failure in found.failures:
        click.echo(f"\n{failed(failure, at_work)}")
    if found.sources:
        click.echo()
        rows = [
            (one.source, one.kind, "yes" if one.installed else "no", ", ".join(one.relations), one.url)
            for one in found.sources
        ]
        show_table(("source", "kind", "installed", "relations", "url"), rows)
    for line in (*wait_lines(found), *problem_lines(found.problems)):
        click.echo(f"\n{line}" if not line.startswith(" ") else line)
    if found.running is not None:
        _show_report(found.running.report)


def _who(running: "Running") -> str:
    """Who maintains the views, and how old is what it said."""
    age = (now() - datetime.fromisoformat(running.time)).total_seconds()
    gone = "" if running.alive else "; that process is gone, and 'viewkeeper run' goes on where it was"
    return f"process {running.pid} on {running.host}, said {max(age, 0):.0f} s ago{gone}"


def _show_views(views: "tuple[ViewStatus, ...]") -> None:
    from viewkeeper.cli.tables import counted, row_cell, show_table, size, vector

    rows = [
        (
            view.view,
            view.group,
            view.layout,
            str(view.state),
            row_cell(view.rows, selects=view.selects),
            str(view.files),
            size(view.bytes),
            f"{counted(view.pending_rows, 'row')}, {counted(view.pending_files, 'file')}"
            if view.pending_files
            else "-",
            vector(dict(view.vector)),
        )
        for view in views
    ]
    headings = ("view", "group", "layout", "state", "rows", "files", "size", "pending", "vector")
    show_table(headings, rows, right=(3, 4, 5, 6))


def _show_families(views: "tuple[ViewStatus, ...]") -> None:
    """What several tables are when they are read as one."""
    from viewkeeper.cli.tables import row_cell, show_table, size

    families: dict[str, list[ViewStatus]] = {}
    for view in views:
        if view.family is not None:
            families.setdefault(view.family, []).append(view)
    if families:
        click.echo()
        rows = [
            (
                family,
                members[0].group,
                str(len(members)),
                str(members[0].state),
                row_cell(sum(member.rows for member in members), selects=any(member.selects for member in members)),
                size(sum(member.bytes for member in members)),
            )
            for family, members in sorted(families.items())
        ]
        show_table(("family", "group", "tables", "state", "rows", "size"), rows, right=range(2, 6))


def _show_kept(views: "tuple[ViewStatus, ...]") -> None:
    """How views are maintained, and why some are not any more."""
    from viewkeeper.cli.report_words import way_out
    from viewkeeper.cli.tables import counted, moment, show_table

    kept = [
        (view.view, view.algorithm, view.consistency or "-", "yes" if view.halted else "no")
        for view in views
        if view.algorithm is not None
    ]
    if kept:
        click.echo()
        show_table(("view", "algorithm", "consistency", "halted"), kept)
    deferred = {view.group: view for view in views if view.refresh not in (None, "continuous")}
    for group, view in sorted(deferred.items()):
        click.echo(f"{group}: refreshed {view.refresh}; {counted(view.waiting, 'change')} noted since")
    for view in views:
        if view.halted is not None:
            halt = view.halted
            click.echo(f"\n{view.view} is halted since {moment(halt.time)}, at state {halt.state}: {halt.reason}")
            click.echo(way_out(view.view))


def _show_report(report: "Report") -> None:
    """What the process that maintains the views is doing."""
    from viewkeeper.cli.tables import show_table
    from viewkeeper.cli.watching import GROUP_HEADINGS, SOURCE_HEADINGS, group_cells, source_cells

    click.echo()
    show_table(SOURCE_HEADINGS, [source_cells(source) for source in report.sources], right=(2, 3))
    click.echo()
    show_table(GROUP_HEADINGS, [group_cells(group, None) for group in report.groups], right=range(2, 8))
