"""`viewkeeper check`: the level of consistency that a history reaches, and what breaks the next one.

Exit code 0: judged; 1: the level asked for by --at-least is not reached; 2: the history cannot be read.
"""

import json
from typing import TYPE_CHECKING, Any

import click

from viewkeeper.levels import Level

if TYPE_CHECKING:
    from viewkeeper.checker.history import History
    from viewkeeper.checker.judgement import Judgement

_MARKS = {True: "✓", False: "✗", None: "?"}


@click.command(short_help="Judge the history of a run.")
@click.argument("history", type=click.Path())
@click.option("--blind", is_flag=True, help="Search for a mapping to source states instead of trusting the vectors.")
@click.option("--json", "as_json", is_flag=True, help="Print the judgement as one JSON object.")
@click.option(
    "--at-least",
    type=click.Choice([str(level) for level in Level]),
    help="Exit with 1 if the history does not reach this level.",
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="How many source states a blind search may look at; what it cannot decide with them stays undecided.",
)
@click.pass_context
def check(context: click.Context, history: str, blind: bool, as_json: bool, at_least: str | None, budget: int) -> None:
    """Judge which level of consistency the HISTORY of a run reaches.

    HISTORY is a JSON file as `viewkeeper simulate --history` writes it; docs/consistency.md has the format. Exit code 1
    means that the level of --at-least is not reached, or not decided within the budget.

    \b
    Examples:
      viewkeeper check run.json
      viewkeeper check run.json --blind --at-least strong
    """
    # Imported here so that 'viewkeeper --help' needs no SQL parser.
    from viewkeeper.checker import judge
    from viewkeeper.checker.history import History

    run = History.load(history)
    judgement = judge.check(run, blind=blind, budget=budget)
    if as_json:
        size = {"states": len(run.states), "transactions": len(run.deliveries)}
        click.echo(json.dumps(judgement.to_json() | size | {"given_up": _given_up(run)}))
    else:
        click.echo("\n".join(_report(run, judgement)))
    if at_least is not None and judgement.level < Level[at_least.upper()]:
        context.exit(1)


def _report(run: "History", judgement: "Judgement") -> list[str]:
    """The level, a line for each level, and what no serial schedule holds apart."""
    violations = {violation.level: violation for violation in judgement.violations}
    reached = f"at least {judgement.level}" if judgement.undecided else str(judgement.level)
    how = "matched blindly" if judgement.mode == "blind" else "as their vectors claim"
    lines = [f"{reached}: {_count(run.states, 'state')} over {_count(run.deliveries, 'transaction')}, {how}"]
    told: str | None = None
    for level, holds in judgement.verdict.items():
        line = f"  {_MARKS[holds]} {level}"
        if holds is None:
            line += f": undecided, {judgement.undecided}"
        elif not holds and violations[level].message != told:
            told = violations[level].message
            line += f": {told}"
        lines.append(line)
    for unit in judgement.merged_units:
        ids = ", ".join(dict.fromkeys(id for member in unit for id in member.global_ids))
        if any(sum(part.count for part in member.parts) > 1 for member in unit):
            lines.append(f"  note: parts of {ids} were captured together; they count as one transaction")
        else:
            lines.append(f"  note: the parts of {ids} cross; they count as one transaction")
    for one in _given_up(run):
        missing = ", ".join(one.get("missing", []))
        lines.append(f"  note: global transaction {one.get('id')} was given up without its part from {missing}")
    return lines


def _given_up(run: "History") -> list[Any]:
    """The global transactions that the run did not wait for to the end, as it says itself."""
    noted = run.meta.get("given_up", [])
    return [one for one in noted if isinstance(one, dict)] if isinstance(noted, list) else []


def _count(things: tuple[object, ...], noun: str) -> str:
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")
