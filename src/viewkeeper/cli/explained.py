"""An explanation, for people."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from viewkeeper.cli.tables import counted, moment, show_table

if TYPE_CHECKING:
    from viewkeeper.explaining.summary_explanation import Choice, Explanation, LatticeFacts, Sweep, Table
    from viewkeeper.planner.overview import Told
    from viewkeeper.planner.summaries.ways import Way

KINDS = {
    "join": "a join",
    "self-maintained": "a self-maintained view",
    "summary": "a summary",
    "family": "a family of summaries",
    "hidden": "a hidden table, stored for other views",
    "loaded": "loaded by commits of its own, and maintained by nothing else",
}
_MORE = {
    "join": "the order of the joins",
    "self-maintained": "what is stored, and what is looked up there",
    "summary": "what is stored, its place in the lattice, the SQL, the last refresh",
    "family": "the last refresh",
    "hidden": "what is stored, and the SQL",
}


def show_explanation(found: "Explanation", *, full: bool) -> None:
    """A screen in words, and of a family its tables; in full also what is stored, each join, the statements."""
    from viewkeeper.cli.explained_words import show_words

    _show_head(found)
    show_words(found.in_words, found.kind)
    if found.kind == "family":
        _show_family(found.tables)
    if full:
        _show_details(found)
    elif any(sweep.steps for sweep in found.sweeps) or found.tables or found.self_maintained:
        click.echo(f"\n--full shows more: {_MORE[found.kind]}")
    if found.kind == "family" and found.created:
        click.echo(f"\nviewkeeper explain {found.tables[0].table} says more of that table, and so for each")


def _show_details(found: "Explanation") -> None:
    if found.self_maintained is not None:
        from viewkeeper.cli.explained_self_maintained import show_self_maintained

        show_self_maintained(found.self_maintained)
    _show_sweeps(found.sweeps)
    if found.kind != "family" and found.tables:
        _show_table(found.tables[0])
    if found.lattice is not None:
        _show_refreshes(found.lattice)
    if found.kind != "family" and found.tables:
        _show_statements(found.tables[0])


def _show_head(found: "Explanation") -> None:
    of = f" of {', '.join(found.relations)}" if found.relations else ""
    click.echo(f"{found.view}: {KINDS[found.kind]}{of}" + ("" if found.created else "; not created yet"))
    if found.level is not None:
        click.echo(f"method    {found.algorithm}, {found.level} consistency; refresh: {found.refresh}")
    if found.storage is not None and (found.self_maintained or found.storage_asked or found.sources):
        asked = "no source is queried" if found.self_maintained is not None else _asked(found)
        click.echo(f"storage   {found.storage}, {asked}: {'; '.join(found.storage_reasons)}")
    if found.created:
        rows = counted(found.rows or 0, "row" if found.self_maintained is None else "stored row")
        click.echo(f"holds     {rows} at state {found.state} of group {found.group}")
    else:
        click.echo(f"group     {found.group}")
    if found.halted is not None:
        click.echo(f"halted    {found.halted}")


def _asked(found: "Explanation") -> str:
    """Of a join without a storage of its own: who is asked."""
    asks = any(step.source for sweep in found.sweeps for step in sweep.steps)
    return "its sources are queried" if asks else "and there is no source to query"


def _heading(text: str) -> None:
    click.echo(f"\n{text}")


# --- joins ---


def _show_sweeps(sweeps: "Iterable[Sweep]") -> None:
    rows = [
        (sweep.start if number == 0 else "", step.relation, " and ".join(step.conditions) or "-", step.source or "-")
        for sweep in sweeps
        for number, step in enumerate(sweep.steps)
    ]
    if rows:
        _heading("How each change is joined, in this order until more is known of the sizes")
        show_table(("a change of", "is joined with", "where", "asking"), rows)


# --- summaries ---


def _show_family(tables: "Iterable[Table]") -> None:
    click.echo()
    rows = [
        (
            table.table,
            ", ".join(table.group_by) or "-",
            "-" if table.rows is None else str(table.rows),
            _from(next(way for way in table.choices if way.chosen)),
        )
        for table in tables
    ]
    show_table(("table", "group by", "rows", "computed from"), rows, right=(2,))


def _show_table(table: "Table") -> None:
    _show_stored(table)
    _show_place(table)
    chosen = next(one for one in table.choices if one.chosen)
    _heading(f"Its summary-delta is computed from {_from(chosen)}: {table.why}")
    rows = [
        (one.above, ", ".join(one.joins) or "-", f"{one.expected_rows:,.0f}", f"{one.cost:,.0f}", "*" * one.chosen)
        for one in table.choices
    ]
    show_table(("from", "joined with", "expected rows", "cost", "chosen"), rows, right=(2, 3))
    if table.recomputed:
        _heading("When a value is deleted")
        for line in table.recomputed:
            click.echo(f"  {line}")
    if table.last is not None:
        _heading(f"The last refresh: {_figures(table.last)}")


def _show_stored(table: "Table") -> None:
    _heading("Stored: " + (f"one row for each {', '.join(table.group_by)}" if table.group_by else "one row"))
    columns = [(one.name, one.type, one.holds, "hidden" if one.hidden else "") for one in table.columns]
    show_table(("column", "type", "holds", ""), columns)
    computed = [(one.name, one.sql) for one in table.computed]
    if table.having:
        computed.append(("HAVING", table.having))
    if computed:
        _heading("Computed when it is read")
        show_table(("column", "from what is stored"), computed)
    if table.served_by:
        _heading("Stored for it")
        serving = [
            (one.table, one.why, "not stored" if not one.stored else "-" if one.rows is None else str(one.rows))
            for one in table.served_by
        ]
        show_table(("table", "for", "rows"), serving, right=(2,))


def _show_place(table: "Table") -> None:
    rows = [("above", way.above, way.label or "-", _chosen(way)) for way in table.parents]
    rows += [("below", way.below, way.label or "-", _chosen(way)) for way in table.children]
    rows += [("above", way.above, way.label or "-", _doubt(way)) for way in table.not_relied_upon]
    _heading("In the lattice")
    show_table(("", "table", "by", ""), rows)


def _doubt(way: "Way") -> str:
    return f"not relied upon: only if every fact has its row in {', '.join(way.relies_on)}"


def _chosen(way: "Way") -> str:
    return "chosen" if way.chosen else ""


def _from(choice: "Choice") -> str:
    from viewkeeper.summary.plan import CHANGES

    joins = "".join(f" ⋈ {table}" for table in choice.joins)
    return f"{'the changes' if choice.above == CHANGES else choice.above}{joins}"


def _figures(figures: Mapping[str, Any]) -> str:
    rows = counted(figures.get("summary_delta", 0), "row")
    kinds = ("inserted", "updated", "deleted", "unchanged", "recomputed")
    told = [f"{figures[kind]} {kind}" for kind in kinds if figures.get(kind)]
    groups = ", ".join(told) or "none"
    found = ", ".join(figures.get("optimizations", ())) or "none"
    return f"summary-delta of {rows}; groups: {groups}; optimizations: {found}"


def _show_refreshes(lattice: "LatticeFacts") -> None:
    _heading(f"With all tables of {lattice.name}")
    for hierarchy in lattice.hierarchies:
        click.echo(f"  hierarchy     {hierarchy}")
    click.echo(f"  recomputed    {lattice.recomputed}")
    if lattice.waiting_changes or lattice.waiting_rows:
        changes = counted(lattice.waiting_changes, "change")
        click.echo(f"  waiting       {changes}, and {counted(lattice.waiting_rows, 'row')} of summary-deltas")
    if lattice.refreshes:
        number = "1 refresh" if lattice.refreshes == 1 else f"{lattice.refreshes} refreshes"
        click.echo(
            f"  learned       from {number}: {counted(round(lattice.usual_changes or 0), 'change')}, propagated in "
            f"{lattice.propagate_seconds or 0:.3g} s, refreshed in {lattice.refresh_seconds or 0:.3g} s"
        )
    _show_told("propagated", lattice.last_propagation)
    _show_told("refreshed", lattice.last_refresh)


def _show_told(what: str, told: "Told | None") -> None:
    if told is None:
        return
    figures = told.figures
    seconds = [f"{name.removesuffix('_seconds')} {figures[name]:.3g} s" for name in _SECONDS if name in figures]
    broken = "".join(
        f"; {counted(rows, 'row')} found none in {relation}, though a foreign key promises it"
        for relation, rows in figures.get("broken_foreign_keys", {}).items()
    )
    decision = f", {figures['decision']}: {figures['reason']}" if "decision" in figures else ""
    click.echo(
        f"  {what:<13} {counted(figures['changes'], 'change')} in commit {told.commit}, {moment(told.time)}, "
        f"{', '.join(seconds)}{decision}{broken}"
    )


_SECONDS = ("propagate_seconds", "refresh_seconds", "recompute_seconds")


def _show_statements(table: "Table") -> None:
    statements = table.statements
    _heading("-- Prepare: what each change adds (figure 6)")
    for name, sql in statements.prepared.items():
        click.echo(f"CREATE VIEW {name} AS\n{sql};\n")
    click.echo("-- Propagate: the summary-delta, while only facts change")
    click.echo(f"CREATE VIEW sd_{table.table} AS\n{statements.summary_delta};")
    if statements.with_changed_dimensions is not None:
        click.echo("\n-- ... and when the dimensions change too: _before and _after, and _changes with their weights")
        click.echo(f"CREATE VIEW sd_{table.table} AS\n{statements.with_changed_dimensions};")
    click.echo("\n-- Refresh (figure 8)")
    click.echo(f"{statements.refresh};")
