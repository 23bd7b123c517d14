"""`viewkeeper`: the verbs, and how errors are shown.

Verbs are imported when they are used, and import what is heavy when they run, so that `--help` answers at once.
"""

import gc
import io
import json
import os
import sys
from importlib import import_module
from typing import Any

import click

from viewkeeper.cli import stopping
from viewkeeper.errors import EngineFailure, UsageError, ViewkeeperError, first_line

BAD_INPUT = 2
OUR_MISTAKE = 70
INTERRUPTED = 130
CLOSED_PIPE = 141
TRACEBACK = "VIEWKEEPER_TRACEBACK"
COLLECT_RARELY = (50_000, 20, 100)
"""Thresholds of the garbage collector. Starting makes hundreds of thousands of objects that stay: looking through them
again and again, as by default, took a tenth of the time of a short verb."""

SECTIONS = {
    "Start": ("init", "plan", "apply", "demo"),
    "Sources": ("add-source", "sources", "doctor", "remove-source"),
    "Views": ("create-view", "cube", "drop-view", "reload", "explain", "lattice"),
    "Maintain": ("run", "catch-up", "give-up", "propagate", "refresh", "status", "audit", "bench"),
    "Read": ("query", "states", "changes", "path", "publish"),
    "Storage": ("compact", "vacuum"),
    "Study": ("algorithms", "simulate", "check"),
    "Shell": ("completion",),
}
VERBS = tuple(verb for verbs in SECTIONS.values() for verb in verbs)
EPILOG = """\b
Exit codes:
  0    all is well
  1    it ran and found something wrong: a view is wrong or halted, a group
       has failed, a file or a part of a global transaction is missing, a
       source is out of reach or has findings, a level is not reached
  2    bad input, or a source or the warehouse cannot be opened; the error
       says what to do
  70   a mistake in viewkeeper itself
  130  stopped by Ctrl-C; the warehouse is at a commit. 'run' is meant to be
       stopped so: it ends in order, with 0 or 1, and only a second Ctrl-C
       does not wait for that

\b
VERB --help has examples. --json writes one JSON object, errors included.
NO_COLOR in the environment turns colours off.
"""


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise UsageError(f"there is no verb {args[0]!r}", _other_verb(args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, VERBS))
        for title, verbs in SECTIONS.items():
            commands = [(verb, self.get_command(ctx, verb)) for verb in verbs]
            with formatter.section(title):
                # A width of its own for each section would make the columns dance.
                formatter.write_dl([(f"{verb:{width}}", one.get_short_help_str(80)) for verb, one in commands if one])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        home = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"viewkeeper.cli.{home}"), home)
        return command


def _other_verb(mistyped: str) -> str:
    """What may have been meant."""
    from difflib import get_close_matches

    said = mistyped.lower().replace("_", "-")
    close = get_close_matches(said, VERBS, n=3, cutoff=0.6)
    begins = [verb for verb in VERBS if verb.startswith(said) or said in verb.split("-")]
    found = list(dict.fromkeys([*close, *begins]))[:3]
    return (f"did you mean {' or '.join(found)}? " if found else "") + "viewkeeper --help lists all verbs"


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"viewkeeper {version('viewkeeper')}")
        ctx.exit()


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=EPILOG,
    subcommand_metavar="VERB [ARGS]...",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def viewkeeper() -> None:
    """Materialized views over several databases, maintained incrementally at a consistency level that you choose."""


def main() -> None:
    """Entry point: 0 is fine, 1 is "it ran and found something wrong", 2 is bad input or a broken warehouse."""
    gc.set_threshold(*COLLECT_RARELY)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that has no ⋈ shows something else; it does not stop the program.
            stream.reconfigure(errors="replace")
    code = _run()
    # The memory goes with the process: what is alive need not be looked through once more on leaving.
    gc.freeze()
    sys.exit(code)


def _run() -> int:
    try:
        code = viewkeeper.main(standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ViewkeeperError as error:
        if isinstance(error, EngineFailure) and os.environ.get(TRACEBACK):
            raise
        return _stopped() if stopping.was_interrupted(error) else _explain(error.code, error.detail, error.hint)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return BAD_INPUT
    except click.ClickException as error:
        usage = error.ctx.get_usage() if isinstance(error, click.UsageError) and error.ctx else ""
        return _explain("usage", error.format_message(), f"{usage}; --help says more" if usage else "")
    except (click.Abort, KeyboardInterrupt):
        return _stopped()
    except (_ClosedPipe, OSError) as error:
        # What was still to be written cannot be: not on leaving either.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        if isinstance(error, _ClosedPipe | BrokenPipeError):
            return CLOSED_PIPE
        return _explain("output", f"cannot write: {error.strerror}", "")
    except Exception as error:
        if stopping.was_interrupted(error):
            return _stopped()
        if os.environ.get(TRACEBACK):
            raise
        return _unexpected(error)


def _stopped() -> int:
    """Ctrl-C: what was under way is undone, and the warehouse is at a commit."""
    commit = stopping.last_commit()
    told = "stopped" if commit is None else f"stopped; the warehouse is at commit {commit}"
    if _as_json():
        click.echo(json.dumps({"error": {"code": "stopped", "detail": told, "hint": ""}, "commit": commit}))
    click.echo(told, err=True)
    return INTERRUPTED


def _unexpected(error: Exception) -> int:
    """What no layer below has explained: Spark's own words, or a mistake of this program."""
    again = f"{TRACEBACK}=1 in the environment shows where"
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        return _explain("spark", f"Spark failed: {first_line(error)}", again)
    _explain("mistake", f"a mistake in viewkeeper: {type(error).__name__}: {error}", again)
    return OUR_MISTAKE


def _as_json() -> bool:
    """Whether a program reads what is written. Asked before anything is parsed: bad options are told as JSON too."""
    return "--json" in sys.argv


def _explain(code: str, detail: str, hint: str) -> int:
    if _as_json():
        click.echo(json.dumps({"error": {"code": code, "detail": detail, "hint": hint}}))
    click.echo(f"error: {detail}" + (f"\n  hint: {hint}" if hint else ""), err=True)
    return BAD_INPUT


if __name__ == "__main__":
    main()
