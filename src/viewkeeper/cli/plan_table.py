"""A plan for people: a line for each source, view and cube that something is done to."""

from collections.abc import Sequence

import click

from viewkeeper.cli.tables import counted, show_table
from viewkeeper.project.plan import Action, Plan, Step


def show_plan(plan: Plan) -> None:
    """Prints what would be done, and what would be left."""
    if not plan.exists:
        click.echo(f"there is no warehouse yet; {plan.warehouse} would be made\n")
    parts = (("source", plan.sources), ("view", plan.views), ("cube", plan.cubes))
    rows = [_row(kind, step) for kind, steps in parts for step in steps if step.changes]
    looked_at = [reason for step in plan.sources if not step.changes for reason in step.reasons if not step.if_pruned]
    if rows:
        show_table(("", "", "name", "why", "where"), rows)
        for reason in looked_at:
            click.echo(f"{reason}: its source is looked at again")
    left = [step for step in plan.steps if step.if_pruned]
    for step in left:
        click.echo(f"left: {step.name} is no longer in the project; --prune would {step.action} it")
    if plan.by_hand:
        click.echo(f"not made by a project, and left alone: {', '.join(plan.by_hand)}")
    kept = sum(step.action is Action.KEEP for step in plan.views)
    if not rows:
        click.echo(f"nothing changes; {counted(kept, 'view')} kept")
        return
    click.echo()
    click.echo(f"{summary(plan)}; 'viewkeeper apply' does it")


def summary(plan: Plan) -> str:
    """How many of each: 1 source to add, 3 views to create, 2 kept."""
    told = [*_counts("source", plan.sources), *_counts("view", plan.views), *_counts("cube", plan.cubes)]
    return ", ".join(told)


def _counts(noun: str, steps: Sequence[Step]) -> list[str]:
    by_action: dict[Action, int] = {}
    for step in steps:
        if step.changes:
            by_action[step.action] = by_action.get(step.action, 0) + 1
    return [f"{counted(number, noun)} to {action}" for action, number in by_action.items()]


def _row(kind: str, step: Step) -> tuple[str, str, str, str, str]:
    reasons = list(step.reasons)
    if step.dependants:
        reasons.append(f"with it {', '.join(step.dependants)}")
    if step.loss:
        reasons.append(step.loss)
    return str(step.action), kind, step.name, "; ".join(reasons), step.place or ""
