"""`viewkeeper demo`: an anomaly, the same run without it, and a run whose states are stored and read back."""

import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from viewkeeper.checker.history import History
    from viewkeeper.warehouse.warehouse import Warehouse

EXIT_NOT_THE_SAME = 1


@click.command(short_help="An anomaly, its cure, and a first warehouse.")
@click.option(
    "--warehouse",
    "folder",
    metavar="DIR",
    help="A new or empty folder for the warehouse.  [default: a temporary folder, which is kept]",
)
@click.pass_context
def demo(context: click.Context, folder: str | None) -> None:
    """Show how a view goes wrong when two sources change at once, and how sweep keeps it right.

    Then the states of one more run are committed to a warehouse, and the last is read back with Spark. Exit code 1
    means that it was not what the run had.

    \b
    Examples:
      viewkeeper demo
      viewkeeper demo --warehouse lake
    """
    from viewkeeper.sim.examples import EXAMPLES

    place = _new_folder(folder)
    for name, heading in (
        ("strobe-1", "Conventional incremental maintenance: each update as if nothing else were going on"),
        ("strobe-1-sweep", "The same updates and the same timing under sweep"),
    ):
        click.secho(f"\n{heading}\n", bold=True)
        run = EXAMPLES[name].play(click.echo)
        click.echo(f"\n{run.verdict_line()}")
    click.secho(
        "\nOne more run under sweep; each of its states becomes a commit of a warehouse on Delta Lake\n", bold=True
    )
    example = EXAMPLES["sweep-figure-5-concurrent"]
    told: list[str] = []
    history = example.play(told.append).history
    click.echo("\n".join(told[: example.preamble]))
    same = _store(history, place)
    _say_what_to_try(place)
    context.exit(0 if same else EXIT_NOT_THE_SAME)


def _new_folder(folder: str | None) -> Path:
    from viewkeeper.errors import UsageError

    if folder is None:
        return Path(tempfile.mkdtemp(prefix="viewkeeper-demo-"))
    place = Path(folder)
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise UsageError(f"{place} is not an empty folder", "name a new one: the demo begins with an empty warehouse")
    return place


def _store(history: "History", place: Path) -> bool:
    """Commit the states of a run one by one; whether Spark reads the last one back as it was."""
    from viewkeeper.cli.opening import start_spark
    from viewkeeper.sim.trace import describe_rows
    from viewkeeper.warehouse.warehouse import Warehouse

    with Warehouse.open(place, lambda: start_spark(quiet=False, brief=True)) as warehouse:
        first, *_ = history.states
        columns = [(column.name, column.expression.type) for column in history.definition.output]
        with warehouse.commit() as commit:
            commit.create("v", columns, rows=first.rows, vector=first.vector)
        click.echo(f"commit 1: state 0, V = {describe_rows(first.rows)}")
        for before, after in pairwise(history.states):
            assert after.vector is not None
            with warehouse.commit() as commit:
                state = commit.state("main", after.vector, {"v": after.rows - before.rows})
            assert commit.record is not None
            click.echo(f"commit {commit.record.commit}: state {state}, V = {describe_rows(after.rows)}")
        last = dict(history.states[-1].rows.weights())
        same = _read_back(warehouse) == last
    verdict = "the same bag as in the run" if same else f"NOT what the run had: {last}"
    click.echo(f"\nread back with Spark: {verdict}")
    return same


def _read_back(warehouse: "Warehouse") -> dict[tuple[object, ...], int]:
    return dict(Counter(tuple(row) for row in warehouse.read("v").collect()))


def _say_what_to_try(place: Path) -> None:
    click.echo(
        "\nNext, after '. .venv/bin/activate':\n"
        f"  viewkeeper status -w {place}\n"
        f"  viewkeeper states v -w {place}\n"
        f"  viewkeeper changes v --since 0 -w {place}\n"
        f"  viewkeeper query 'SELECT * FROM v' -w {place}\n"
        "  viewkeeper algorithms, simulate --list, simulate --matrix, --help"
    )
