"""`viewkeeper demo`: a retail chain in three databases, written to while views over them are maintained.

Exit code 0: every view is what its databases say; 1: one is not.
"""

import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.opening import json_option
from viewkeeper.clock import monotonic

if TYPE_CHECKING:
    from viewkeeper.cli.demo_words import Words
    from viewkeeper.demo.demonstration import Demonstration, KeptFresh, ViewOutcome
    from viewkeeper.mediator.report import Report

EXIT_WRONG, INTERRUPTED = 1, 130
SECONDS, SEED = 30, 7
DATABASES = "databases"
"""the folder of the databases, in that of the warehouse: one folder holds the whole demo"""


@click.command(short_help="Three databases, live writers, views maintained: all on this machine.")
@click.option(
    "--warehouse",
    "folder",
    metavar="DIR",
    help="A new or empty folder for the warehouse and the databases.  [default: a temporary folder, which is kept]",
)
@click.option(
    "--seconds",
    metavar="N",
    type=click.FloatRange(min=1, max=600),
    default=SECONDS,
    show_default=True,
    help="How long the databases are written to.",
)
@click.option(
    "--seed", metavar="N", type=int, default=SEED, show_default=True, help="Fixes the data and what is written."
)
@click.option(
    "--postgres", "servers", is_flag=True, help="The shop in a private PostgreSQL, the customers in a private MariaDB."
)
@json_option
@click.pass_context
def demo(context: click.Context, folder: str | None, seconds: float, seed: int, servers: bool, as_json: bool) -> None:
    """Keep views over the three databases of a small retail chain fresh while they are written to.

    Sales come from one database, customers from another, items from a third one. Joins of all three are kept at the
    level complete: each transaction of each database becomes a state. The four summary tables of the summary-delta
    paper and a small cube follow. Then it says what happened and what recomputing would have taken, and audits every
    view. What is in the databases and the views at the end depends on --seed and --seconds alone.

    Exit code 1 means that a view is not what its databases say. Ctrl-C ends it earlier, with the warehouse at a commit.

    \b
    Examples:
      viewkeeper demo
      viewkeeper demo --seconds 10 --warehouse lake
      viewkeeper demo --postgres
    """
    from viewkeeper.cli.demo_words import Words

    if servers:
        from viewkeeper.demo.servers import refuse_missing

        refuse_missing()
    words = Words(_new_folder(folder), as_json=as_json, servers=servers)
    words.anomaly()
    try:
        with _ended_in_order(), ExitStack() as stack:
            demonstration = _prepared(stack, words, seed, seconds)
            kept = _keep_fresh(demonstration, words, seconds)
            words.happened(kept)
            outcomes = [] if kept.stopped else _compared(demonstration, words, kept)
    except BaseException:
        words.broken_off()
        raise
    words.end(seed, kept, outcomes)
    context.exit(INTERRUPTED if kept.stopped else 0 if all(one.right for one in outcomes) else EXIT_WRONG)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """SIGTERM is like Ctrl-C: writers and servers are ended too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _new_folder(folder: str | None) -> Path:
    from viewkeeper.errors import UsageError

    if folder is None:
        return Path(tempfile.mkdtemp(prefix="viewkeeper-demo-"))
    place = Path(folder)
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise UsageError(f"{place} is not an empty folder", "name a new one: the demo begins with an empty warehouse")
    return place


def _prepared(stack: ExitStack, words: "Words", seed: int, seconds: float) -> "Demonstration":
    """The databases filled, and the views over them loaded."""
    from viewkeeper.cli.opening import start_spark
    from viewkeeper.cli.stopping import writing_to
    from viewkeeper.demo.demonstration import Demonstration, make_databases
    from viewkeeper.demo.servers import private_servers
    from viewkeeper.demo.views import VIEWS
    from viewkeeper.warehouse import Warehouse

    urls: Mapping[str, str] = {}
    if words.servers:
        with words.meanwhile("starting a private PostgreSQL and a private MariaDB ..."):
            urls = stack.enter_context(private_servers())
    warehouse = stack.enter_context(Warehouse.open(words.place, lambda: start_spark(quiet=words.as_json, brief=True)))
    writing_to(warehouse.path)
    with words.meanwhile("filling three databases ..."):
        urls = make_databases(warehouse.path / DATABASES, seed, urls)
    words.databases(urls)
    demonstration = Demonstration(warehouse, urls, seed, seconds)
    # Now, so that nobody waits for it while the databases are written to.
    assert warehouse.spark is not None
    demonstration.add_sources()
    for name in VIEWS:
        begin = monotonic()
        with words.meanwhile(f"loading {name} ..."):
            rows = demonstration.create_view(name)
        words.loaded(name, rows, monotonic() - begin)
    return demonstration


def _keep_fresh(demonstration: "Demonstration", words: "Words", seconds: float) -> "KeptFresh":
    from viewkeeper.cli.run import stopped_by_signals
    from viewkeeper.cli.watching import watching

    words.heading(f"For {seconds:g} seconds all three databases are written to, and the views follow")
    with (
        watching(as_json=words.as_json, quietly=words.as_json, positions=False) as show,
        stopped_by_signals(demonstration.stop) as begun,
    ):

        def watch(report: "Report") -> None:
            begun()
            show(report)

        return demonstration.keep_fresh(watch)


def _compared(demonstration: "Demonstration", words: "Words", kept: "KeptFresh") -> "list[ViewOutcome]":
    """Each view beside what recomputing it takes, and beside its databases."""
    from viewkeeper.demo.recomputing import recompute
    from viewkeeper.demo.views import VIEWS

    warehouse = demonstration.warehouse
    halted = {name for one in warehouse.status().views if one.halted for name in (one.view, one.family)}
    # First, for Spark has warmed up after it.
    with words.meanwhile("comparing all views with their databases ..."):
        audits = warehouse.audits(*(name for name in VIEWS if name not in halted))
    with words.meanwhile("computing all views from nothing with Spark ..."):
        recomputed = recompute(warehouse.spark, demonstration.urls)
    return demonstration.outcome(kept, recomputed, {audit.view: audit for audit in audits})
