"""What a propagation or a refresh has done, for people and for machines."""

import json
from collections.abc import Mapping
from typing import Any

import click

from viewkeeper.cli.tables import counted


def show_rounds(rounds: Mapping[str, Mapping[str, Any]], *, as_json: bool) -> None:
    """One line for each lattice, and one for each table that changed."""
    if as_json:
        click.echo(json.dumps({"lattices": {name: dict(told) for name, told in rounds.items()}}))
        return
    if not rounds:
        click.echo("there are no deferred summaries")
    for name, told in rounds.items():
        click.echo(f"{name}: {_done(told)}")
        for table, figures in told.get("tables", {}).items():
            if not table.startswith("_vk_"):
                click.echo(f"  {table}: {_figures(figures)}")


def _done(told: Mapping[str, Any]) -> str:
    if not told["changes"] and "decision" not in told:
        return str(told.get("reason", "no changes wait"))
    parts = [counted(told["changes"], "change") if told["changes"] else "what was propagated before"]
    for step in ("propagate", "refresh", "recompute"):
        if f"{step}_seconds" in told and (told["changes"] or step != "propagate"):
            parts.append(f"{step} {told[f'{step}_seconds']:.3f} s")
    if told.get("decision") == "recompute":
        parts.append(f"recomputed ({told['reason']})")
    return ", ".join(parts)


def _figures(figures: Mapping[str, Any]) -> str:
    groups = [
        f"{figures[what]:,} {what}" for what in ("inserted", "updated", "deleted", "recomputed") if figures.get(what)
    ]
    delta = f"summary-delta of {counted(figures.get('summary_delta', 0), 'row')}"
    return ", ".join([delta, *groups])
