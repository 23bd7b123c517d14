"""Progress of long work: a bar or a passing line in a terminal, plain lines elsewhere, nothing with --json.

All of it goes to standard error: what a verb found is on standard output.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_passing: list[str] = []
"""the lines of a terminal that are shown while they are true, the innermost last"""


@contextmanager
def passing_line() -> Iterator[Callable[[str], None]]:
    """Yields a function that writes a line of a terminal, over what it said before; it goes away at the end.

    By hand and not by a spinner: that needs a thread, and starting Spark forks this process.
    """
    place = len(_passing)
    _passing.append("")

    def say(text: str) -> None:
        _passing[place] = text[: shutil.get_terminal_size().columns - 1]
        if place == len(_passing) - 1:
            _draw()

    try:
        yield say
    finally:
        _passing.pop()
        _draw()


def _draw() -> None:
    print(f"\r\x1b[K{_passing[-1] if _passing else ''}", file=sys.stderr, end="", flush=True)


@contextmanager
def passing(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """The same if there is a terminal; else what is said is not shown."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    with passing_line() as say:
        yield say


@contextmanager
def announced(what: str, *, quiet: bool) -> Iterator[None]:
    """Says what takes a while; in a terminal the line goes away when it is done."""
    with announcing(quiet=quiet) as say:
        say(what)
        yield


@contextmanager
def announcing(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yields a function that does so, for one thing after the other."""
    if quiet:
        yield lambda what: None
    elif sys.stderr.isatty():
        with passing_line() as say:
            yield say
    else:
        yield lambda what: print(what, file=sys.stderr, flush=True)


@contextmanager
def tracked(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Yields a function to call once per finished piece of work."""
    if quiet:
        yield lambda: None
        return
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)
        return
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done * 10 // total != (done - 1) * 10 // total:
            print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)

    yield advance
