"""`viewkeeper`: the verbs, and how errors are shown.

Verbs are imported when they are used, and import what is heavy when they run, so that `--help` answers at once.
"""

import io
import json
import os
import sys
from importlib import import_module
from typing import Any

import click

from viewkeeper.errors import ViewkeeperError

BAD_INPUT = 2
OUR_MISTAKE = 70
INTERRUPTED = 130
CLOSED_PIPE = 141
TRACEBACK = "VIEWKEEPER_TRACEBACK"

VERBS = (
    "demo", "algorithms", "simulate", "check",
    "add-source", "sources", "doctor", "remove-source",
    "create-view", "cube", "drop-view", "catch-up", "run", "propagate", "refresh", "audit", "reload",
    "status", "explain", "lattice", "states", "query", "changes", "compact", "vacuum", "publish",
)  # fmt: skip


class _ClosedPipe(Exception):
    """Nobody reads standard output any more."""


class _Verbs(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # Click would exit with 1, which means something else here.
            raise _ClosedPipe from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        home = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"viewkeeper.cli.{home}"), home)
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
    """Entry point: 0 is fine, 1 is "it ran and found something wrong", 2 is bad input or a broken warehouse."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that has no ⋈ shows something else; it does not stop the program.
            stream.reconfigure(errors="replace")
    sys.exit(_run())


def _run() -> int:
    try:
        code = viewkeeper.main(standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ViewkeeperError as error:
        return _explain(error.code, error.detail, error.hint)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return BAD_INPUT
    except click.ClickException as error:
        usage = error.ctx.get_usage() if isinstance(error, click.UsageError) and error.ctx else ""
        return _explain("usage", error.format_message(), f"{usage}; --help says more" if usage else "")
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return INTERRUPTED
    except (_ClosedPipe, OSError) as error:
        # What was still to be written cannot be: not on leaving either.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        if isinstance(error, _ClosedPipe | BrokenPipeError):
            return CLOSED_PIPE
        return _explain("output", f"cannot write: {error.strerror}", "")
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return _unexpected(error)


def _unexpected(error: Exception) -> int:
    """What no layer below has explained: Spark's own words, or a mistake of this program."""
    again = f"{TRACEBACK}=1 in the environment shows where"
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        from viewkeeper.warehouse.spark_files import first_line

        return _explain("spark", f"Spark failed: {first_line(error)}", again)
    _explain("mistake", f"a mistake in viewkeeper: {type(error).__name__}: {error}", again)
    return OUR_MISTAKE


def _explain(code: str, detail: str, hint: str) -> int:
    if "--json" in sys.argv:
        click.echo(json.dumps({"error": {"code": code, "detail": detail, "hint": hint}}))
    click.echo(f"error: {detail}" + (f"\n  hint: {hint}" if hint else ""), err=True)
    return BAD_INPUT


if __name__ == "__main__":
    main()
