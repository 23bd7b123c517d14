"""`viewkeeper`: the verbs, and how errors are shown.

Verbs are imported when they are used, and import what is heavy when they run, so that `--help` answers at once.
"""

import json
import sys
from importlib import import_module

import click

from viewkeeper.errors import ViewkeeperError

VERBS = ("demo", "algorithms", "simulate", "check")


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"viewkeeper.cli.{cmd_name}"), cmd_name)
        return command


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"viewkeeper {version('viewkeeper')}")
        ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def viewkeeper() -> None:
    """Materialized views over several databases, kept fresh incrementally at a consistency level that you choose."""


def main() -> None:
    """Entry point: 0 is fine, 1 is "it ran and found something wrong", 2 is bad input."""
    try:
        viewkeeper()
    except ViewkeeperError as error:
        if "--json" in sys.argv:
            click.echo(json.dumps({"error": {"code": error.code, "detail": error.detail, "hint": error.hint}}))
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
