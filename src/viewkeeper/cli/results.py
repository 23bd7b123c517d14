"""Rows on standard output or in a file: as a table, CSV, JSON or Parquet."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from viewkeeper.clock import unique_id
from viewkeeper.errors import UsageError

if TYPE_CHECKING:
    from viewkeeper.serving.query_results import TextRows

Verb = TypeVar("Verb", bound=Callable[..., Any])

FORMATS = ("table", "csv", "json", "parquet")
SHOWN = 100
"""how many rows a table has unless more are asked for"""


def data_is_piped(form: str, output: str | None) -> bool:
    """Whether standard output is for a program, with nobody at the terminal to be told of progress."""
    return form != "table" and output is None and not sys.stderr.isatty()


def json_rows_option(verb: Verb) -> Verb:
    """`--json`, for verbs whose rows have a format."""
    return click.option("--json", "as_json", is_flag=True, help="The same as --format json.")(verb)


def form_of(form: str | None, as_json: bool, output: str | None = None) -> str:
    """The format of the rows: what was requested, else what the name of the file says; UsageError if two were."""
    if as_json and form not in (None, "json"):
        raise UsageError(f"there are two formats: --json and --format {form}", "leave one of them out")
    named = Path(output or "").suffix.lower().removeprefix(".")
    return "json" if as_json else form or (named if named in FORMATS else "table")


def check_output(form: str, output: str | None) -> Path | None:
    """The file to write; UsageError before any work is done if it cannot be."""
    if output is None:
        if form == "parquet":
            raise UsageError("parquet is not for a terminal", "name a file with --output")
        return None
    target = Path(output).absolute()
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {target}: there is no folder {target.parent}", "make it, or name another file")
    if target.is_dir():
        raise UsageError(f"cannot write {target}: it is a folder", "name a file")
    if _is_special(target):
        return target
    trial = _beside(target)
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise _unwritable(target, error) from error
    return target


def write_result(frame: Any, form: str, target: Path | None, limit: int | None) -> None:
    """Write the rows of a DataFrame."""
    from viewkeeper.cli.text_forms import csv_lines, json_lines
    from viewkeeper.serving.query_results import text_rows, write_parquet

    if form == "parquet":
        assert target is not None
        write_parquet(frame if limit is None else frame.limit(limit), target)
    elif form == "table":
        shown = limit or SHOWN
        _write_table(text_rows(frame, shown + 1), shown, target)
    else:
        lines = (csv_lines if form == "csv" else json_lines)(text_rows(frame, limit))
        with _opened(target) as file:
            for line in lines:
                file.write(line.encode())


def say_written(target: Path | None, *, quiet: bool) -> None:
    """Where the rows are, if they are not to be seen."""
    if target is not None and not quiet:
        click.echo(f"written: {target}", err=True)


def write_text(text: str, target: Path) -> None:
    """Write a whole text, or nothing."""
    with _opened(target) as file:
        file.write(text.encode())


def _write_table(found: "TextRows", shown: int, target: Path | None) -> None:
    from viewkeeper.cli.tables import aligned, counted, show_rows
    from viewkeeper.cli.text_forms import NUMERIC

    rows = [["NULL" if value is None else value for value in row] for row in found.rows]
    more, rows = len(rows) > shown, rows[:shown]
    headings = [name for name, _ in found.columns]
    right = [number for number, (_, kind) in enumerate(found.columns) if kind in NUMERIC]
    count = counted(len(rows), "row")
    footer = f"the first {count}; --limit N shows more, --format csv all of them" if more else count
    if target is None:
        cut = show_rows(headings, rows, right)
        click.echo(f"\n{footer}{'; cut to the width of the terminal, --format csv is not' if cut else ''}")
        return
    with _opened(target) as file:
        file.write("\n".join([*aligned(headings, rows, right), "", footer, ""]).encode())


@contextmanager
def _opened(target: Path | None) -> Iterator[BinaryIO]:
    """Standard output or a file, for data: in UTF-8, whatever the terminal speaks."""
    if target is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    # A query that fails half way leaves what was there before.
    written = target if _is_special(target) else _beside(target)
    try:
        with open(written, "wb") as file:
            yield file
        if written != target:
            os.replace(written, target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        if written != target:
            written.unlink(missing_ok=True)


def _is_special(target: Path) -> bool:
    """A device or a pipe: written as it is."""
    return target.exists() and not target.is_file()


def _beside(target: Path) -> Path:
    return target.with_name(f".{unique_id()}.part")


def _unwritable(target: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {target}: {error.strerror or error}", "name a file that can be written")
