"""`viewkeeper init`: an example project that works."""

import json
from pathlib import Path

import click

from viewkeeper.cli.completing import complete_folders
from viewkeeper.cli.opening import json_option


@click.command(short_help="Write an example project that works.")
@click.argument("folder", metavar="[FOLDER]", default=".", shell_complete=complete_folders)
@click.option("--force", is_flag=True, help="Also into a folder that is not empty. Files that are there stay.")
@json_option
def init(folder: str, force: bool, as_json: bool) -> None:
    """Write a small project into FOLDER, which is made if it is not there: viewkeeper.yml, views, two SQLite databases.

    Everything in it has comments, and works as it is. Replace the databases by your own, one by one. Nothing that is
    there is ever overwritten.

    \b
    Examples:
      viewkeeper init shop
      viewkeeper init --force .
    """
    from viewkeeper.project.example import write_example

    made = write_example(Path(folder), force=force)
    if as_json:
        click.echo(json.dumps({"folder": str(Path(folder).absolute()), "written": made.written, "kept": made.kept}))
        return
    for name in made.written:
        click.echo(f"wrote {Path(folder) / name}")
    for name in made.kept:
        click.echo(f"kept {Path(folder) / name}, which was there")
    click.echo("next:")
    steps = ([f"cd {folder}"] if folder != "." else []) + ["viewkeeper plan", "viewkeeper apply", "viewkeeper status"]
    for step in steps:
        click.echo(f"  {step}")
    click.echo("README.md has more to try")
