"""`viewkeeper plan`: what applying the project would do.

Exit code 0: it can be applied; with --check, 1: something would change.
"""

import json

import click

from viewkeeper.cli.opening import json_option, project_option, start_spark

EXIT_CHANGES = 1


@click.command(short_help="What applying the project would change; nothing is done.")
@project_option
@click.option("--prune", is_flag=True, help="As if applied with --prune: what the project no longer has is dropped.")
@click.option("--check", is_flag=True, help="Exit with 1 if something would change.")
@json_option
@click.pass_context
def plan(context: click.Context, path: str, prune: bool, check: bool, as_json: bool) -> None:
    """Compare viewkeeper.yml and the files that it names with the warehouse, and show what 'viewkeeper apply' would do.

    All of the project is checked: every view is parsed over the tables that the sources have. A source that was not
    added yet is contacted for that, and nothing is changed there. A process that maintains the views is not disturbed.

    A view whose definition means the same is kept. It is altered if only how it is kept is different, and reloaded if
    its rows or columns are: then it is recreated beside the old one, which readers have until the new one is complete.
    The states that it had before can no longer be read then; the plan says how many these are.

    \b
    Examples:
      viewkeeper plan
      viewkeeper plan --check --json
    """
    from viewkeeper.cli.plan_table import show_plan
    from viewkeeper.project.project import Project

    found = Project.load(path).plan(prune=prune, spark=lambda: start_spark(quiet=as_json, brief=True))
    if as_json:
        click.echo(json.dumps(found.as_json()))
    else:
        show_plan(found)
    context.exit(EXIT_CHANGES if check and found.changes else 0)
