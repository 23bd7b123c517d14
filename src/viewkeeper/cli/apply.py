"""`viewkeeper apply`: the warehouse becomes what the project says."""

import json
from typing import Any

import click

from viewkeeper.cli.loading import load_shown
from viewkeeper.cli.opening import json_option, open_to_maintain, project_option, start_spark
from viewkeeper.cli.progress import passing


@click.command(short_help="Make the warehouse what the project says.")
@project_option
@click.option("--prune", is_flag=True, help="Drop what a project made before and this one no longer has.")
@json_option
def apply(path: str, prune: bool, as_json: bool) -> None:
    """Make the warehouse what viewkeeper.yml and the files that it names say; 'viewkeeper plan' shows what that is.

    The warehouse is made if it is not there. Sources are added, views created in the order in which they read each
    other, and those whose definition has changed are altered or reloaded: readers have the old state until the new one
    is complete. All of the project is checked before anything is done; then each step is done wholly or not at all, and
    applying again goes on where it ended.

    Views and sources that the project has no more are left as they are, and only named, unless --prune is given. Then
    those go that were made by applying a project. What was made by create-view, cube or add-source is never dropped.

    \b
    Examples:
      viewkeeper apply
      viewkeeper apply --prune
      viewkeeper apply -p etc/viewkeeper.yml --json
    """
    from viewkeeper.project.applying import BEGINS
    from viewkeeper.project.project import Project

    project = Project.load(path)
    done: list[dict[str, Any]] = []
    if not project.exists:
        # Before there is a warehouse, so that a mistake leaves none.
        project.plan(spark=lambda: start_spark(quiet=as_json, brief=False))
    with (
        passing(quiet=as_json) as say,
        open_to_maintain(str(project.warehouse), quiet=as_json, create=True) as opened,
        load_shown(opened, quiet=as_json, say=say),
    ):

        def watch(kind: str, name: str, what: str) -> None:
            if what == BEGINS:
                say(f"{kind} {name} ...")
                return
            say("")
            done.append({"kind": kind, "name": name, "done": what})
            if not as_json:
                click.echo(f"{kind} {name}: {what}")

        plan = project.apply(opened, prune=prune, watch=watch)
    if as_json:
        click.echo(json.dumps({**plan.as_json(), "done": done}))
        return
    for step in plan.steps:
        if step.if_pruned:
            click.echo(f"left: {step.name} is no longer in the project; --prune would {step.action} it")
    if not done:
        click.echo("nothing to do: the warehouse is what the project says")
    elif project.views:
        click.echo("'viewkeeper run' maintains the views; 'viewkeeper catch-up' does it once")
