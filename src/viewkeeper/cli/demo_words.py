"""What `viewkeeper demo` says: lines and tables as it goes, or one JSON object at the end."""

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viewkeeper.cli.progress import announced

if TYPE_CHECKING:
    from viewkeeper.demo.demonstration import KeptFresh, ViewOutcome

KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mariadb": "MariaDB"}
OUTCOME_HEADINGS = ("view", "level", "rows", "states", "fresh after", "recomputed in", "audit")


_STAYS = "WRONG for good: the joined row stays in the view, although its partner is gone"


class Words:
    """Says what goes on, for people; for programs only the end counts."""

    def __init__(self, place: Path, *, as_json: bool, servers: bool) -> None:
        self.place, self.as_json, self.servers = place, as_json, servers

    def _say(self, *lines: str) -> None:
        if not self.as_json:
            click.echo("\n".join(lines))

    def heading(self, text: str) -> None:
        if not self.as_json:
            click.secho(f"\n{text}", bold=True)

    def meanwhile(self, what: str) -> AbstractContextManager[None]:
        """Says what takes a while."""
        return announced(what, quiet=self.as_json)

    def anomaly(self) -> None:
        """What goes wrong without care, in three lines."""
        from viewkeeper.sim.examples import EXAMPLES

        if self.as_json:
            return
        runs = [EXAMPLES[name].play(lambda _: None) for name in ("strobe-1", "strobe-1-sweep")]
        self.heading("Why it needs care: a row is inserted in one database while its partner is deleted in another")
        width = max(len(run.scenario.algorithm) for run in runs)
        for run in runs:
            wrong = run.claimed.violation
            right = "right, with the same updates at the same moments"
            self._say(f"  {run.scenario.algorithm:{width}}  {_STAYS if wrong else right}")
            if wrong:
                self._say(f"  {'':{width}}  {wrong.message}")
        self._say("  step by step: viewkeeper simulate --example strobe-1 --trace")

    def databases(self, urls: Mapping[str, str]) -> None:
        from viewkeeper.demo.retail import ITEMS, PEOPLE, SALES, STORES

        holds = {
            "shop": f"{SALES:,} sales in {STORES} stores",
            "customers": f"{PEOPLE:,} people",
            "catalogue": f"{ITEMS} items",
        }
        width = max(map(len, KINDS.values())) if self.servers else len(KINDS["sqlite"])
        self.heading("A retail chain in three databases that know nothing of each other")
        self._say(*(f"  {name:9}  {KINDS[url.partition(':')[0]]:{width}}  {holds[name]}" for name, url in urls.items()))
        self.heading("Views over them, loaded once")

    def loaded(self, view: str, rows: int, seconds: float) -> None:
        from viewkeeper.demo.views import HOLDS

        self._say(f"  {view:9}  {rows:>6,} rows  {seconds:4.1f} s  {HOLDS[view]}")

    def broken_off(self) -> None:
        """It was interrupted, or something went wrong; what, others say."""
        click.echo(f"what there is of the demo is in {self.place}", err=True)

    # --- the end ---

    def happened(self, kept: "KeptFresh") -> None:
        """What the writers did, and what that was to the views."""
        from viewkeeper.demo.views import CUBE, JOINS, SUMMARIES

        made, states = sum(kept.committed.values()), kept.states[kept.joins.name]
        self.heading("What happened")
        by_database = ", ".join(f"{name} {count}" for name, count in kept.committed.items())
        self._say(f"  transactions  {made} in {kept.seconds:.0f} s: {by_database}")
        each = "" if kept.queries_per_update is None else f", {kept.queries_per_update:.2f} queries per transaction"
        self._say(f"  joins         {' and '.join(JOINS)}: {states} states in {kept.joins.commits} commits{each}")
        took = "" if kept.refresh_seconds is None else f", each {kept.refresh_seconds * 1000:.0f} ms for all tables"
        self._say(
            f"  summaries     {', '.join(SUMMARIES)} and the cube {', '.join(CUBE)}: {kept.refreshes} refreshes{took}"
        )

    def end(self, seed: int, kept: "KeptFresh", outcomes: "Sequence[ViewOutcome]") -> None:
        if self.as_json:
            click.echo(json.dumps(self._as_json(seed, kept, outcomes), default=str))
            return
        if kept.stopped:
            self._say(f"\nstopped after {kept.seconds:.0f} s: the views are at a commit, and were not audited")
        else:
            self._outcomes(kept, outcomes)
        self._next(kept.states[kept.joins.name])

    def _outcomes(self, kept: "KeptFresh", outcomes: "Sequence[ViewOutcome]") -> None:
        from viewkeeper.cli.tables import show_table

        self._say("")
        show_table(OUTCOME_HEADINGS, [_cells(one) for one in outcomes], right=range(2, 6))
        self._say(
            "",
            "level           of either, no state shows what the databases never were;",
            "                complete: each transaction is a state of its own; strong: several may become one state",
            "fresh after     from the commit of a database to the commit of the view: the median",
            "recomputed in   Spark, from the same tables as Parquet, warmed up by the audit: the faster of two",
            "audit           the view, compared with what its databases say",
            "",
            *_compared_fairly(kept, outcomes),
        )
        wrong = [one.view for one in outcomes if not one.right]
        if wrong:
            self._say(f"\nWRONG: {', '.join(wrong)}; viewkeeper audit shows the rows")

    def _next(self, last: int) -> None:
        self.heading("Where it is")
        self._say(f"  the warehouse  {self.place}", f"  the databases  {self.place / 'databases'}")
        self._say(f"  to delete all  rm -r {shlex.quote(str(self.place))}")
        if self.servers:
            self._say("  PostgreSQL and MariaDB were private to this run, and are gone")
        self.heading("Next, after '. .venv/bin/activate'")
        self._say(*(f"  {command}" for command in next_commands(self.place, last, servers=self.servers)))

    def _as_json(self, seed: int, kept: "KeptFresh", outcomes: "Sequence[ViewOutcome]") -> dict[str, Any]:
        joins = kept.joins
        return {
            "seed": seed,
            "seconds": kept.seconds,
            "stopped": kept.stopped,
            "warehouse": str(self.place),
            "databases": str(self.place / "databases"),
            "transactions": dict(kept.committed),
            "joins": {
                "transactions": joins.transactions,
                "states": kept.states[joins.name],
                "commits": joins.commits,
                "queries": joins.queries,
                "queries_per_update": kept.queries_per_update,
            },
            "summaries": {"refreshes": kept.refreshes, "refresh_seconds": kept.refresh_seconds},
            "views": [{**asdict(replace(one, audit=None)), "audit": _audited(one)} for one in outcomes],
            "right": not kept.stopped and all(one.right for one in outcomes),
        }


def _compared_fairly(kept: "KeptFresh", outcomes: "Sequence[ViewOutcome]") -> list[str]:
    """What the two columns of seconds mean, and what they do not."""
    total, made = sum(one.recompute_seconds for one in outcomes), sum(kept.committed.values())
    return [
        f"Views of this size are soon recomputed: all of them in {total:.1f} s, once the tables are there as files.",
        f"But that would be due after each of the {made:,} transactions, and it grows with the tables, where a refresh",
        "grows with what has changed.",
    ]


def _cells(one: "ViewOutcome") -> tuple[str, ...]:
    return (
        one.view,
        one.level,
        f"{one.rows:,}",
        str(one.states),
        "-" if one.fresh_after is None else f"{one.fresh_after:.2f} s",
        f"{one.recompute_seconds:.2f} s",
        _audited(one),
    )


def _audited(one: "ViewOutcome") -> str:
    return "right" if one.right else "WRONG" if one.audit else "halted"


_READING = (
    "status -w {place}",
    "query 'SELECT customer, SUM(qty * price) AS spent FROM purchases GROUP BY customer ORDER BY spent DESC LIMIT 5' "
    "-w {place}",
    "query 'SELECT t.region, SUM(s.qty) AS sold FROM shop.sales s JOIN shop.stores t ON s.store_id = t.store_id "
    "GROUP BY t.region' -w {place}",
    "states purchases -w {place}",
    "changes purchases --since {since} -w {place}",
    "explain scd_sales -w {place}",
    "lattice -w {place}",
)
"""No source is queried: the second query is answered from a summary."""
_WITH_SOURCES = ("audit --all -w {place}",)


def next_commands(place: Path, states: int, *, servers: bool) -> list[str]:
    """What to try behind a demo with so many states; with servers, which are gone then, only what asks no source."""
    warehouse = shlex.quote(str(place))
    since = max(states - 3, 0)
    templates = _READING if servers else (*_READING, *_WITH_SOURCES)
    commands = [f"viewkeeper {one.format(place=warehouse, since=since)}" for one in templates]
    if not servers:
        shop = str(place / "databases" / "shop.db")
        change = (
            f"import sqlite3; c = sqlite3.connect({shop!r}); c.execute('DELETE FROM sales WHERE qty = 5'); c.commit()"
        )
        # One kind of quotes inside the other is what people read best, if the path allows it.
        quoted = shlex.quote(change) if set(shop) & set("\"'$`\\!") else f'"{change}"'
        commands += [f"python -c {quoted}", f"viewkeeper catch-up -w {warehouse}"]
    return commands
