"""How a view is kept, why so, what a change costs and what could be changed: in words, for people."""

import shutil
import sys
from typing import TYPE_CHECKING

import click

from viewkeeper.cli.tables import show_table

if TYPE_CHECKING:
    from viewkeeper.explaining.explanation import Advice, InWords, RelationCost

WIDTH = 100
"""of a line of text, where no terminal has a width of its own"""
WIDEST = 120
LOOKED_UP = {
    "self-maintained": "lookups",
    "join": "views read",
    "summary": "tables",
    "family": "tables",
    "hidden": "tables",
}
"""what is counted of the warehouse's own tables, by kind of view"""


def show_words(found: "InWords", kind: str) -> None:
    """A screen of it."""
    if found.how:
        click.echo("\nHow it is maintained")
        for number, step in enumerate(found.how, 1):
            _wrapped(step, f"  {number}. ", "     ")
    if found.why:
        click.echo("\nWhy so")
        for reason in found.why:
            _wrapped(reason, "  ", "      ")
    if found.costs:
        _show_costs(found.costs, kind)
    if found.measured is not None:
        _wrapped(f"measured: {found.measured.told}", "", "    ")
    if found.advice:
        click.echo("\nWhat you could change")
        for advice in found.advice:
            _show_advice(advice)


def _show_costs(costs: "tuple[RelationCost, ...]", kind: str) -> None:
    asking, looking = any(one.asks for one in costs), any(one.lookups for one in costs)
    headings = ["a change of", "questions"]
    headings += ["to"] if asking else []
    headings += [LOOKED_UP[kind]] if looking else []
    headings += ["rows", "an hour", "work"]
    rows = []
    for one in costs:
        cells = [one.relation, _questions(one)]
        cells += [", ".join(dict.fromkeys(one.asks)) or "-"] if asking else []
        cells += [str(one.lookups)] if looking else []
        rate = "unknown yet" if one.transactions_per_hour is None else f"{one.transactions_per_hour:,.0f}"
        rows.append([*cells, one.rows_told, rate, one.work])
    click.echo("\nWhat a change costs, if it comes alone")
    show_table(headings, rows)


def _questions(cost: "RelationCost") -> str:
    if cost.questions == cost.questions_of_deletion:
        return str(cost.questions)
    return f"{cost.questions}, a deletion {cost.questions_of_deletion}"


def _show_advice(advice: "Advice") -> None:
    _wrapped(f"{advice.change}: {advice.effect}", "  - ", "    ")
    if advice.statement is not None:
        click.echo(f"      {advice.statement}")


def _wrapped(text: str, first: str, others: str) -> None:
    width = min(shutil.get_terminal_size().columns, WIDEST) if sys.stdout.isatty() else WIDTH
    click.echo(click.wrap_text(text, width, initial_indent=first, subsequent_indent=others))
