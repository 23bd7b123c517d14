"""Progress of long work: a bar or a passing line in a terminal, plain lines elsewhere, nothing with --json."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def announced(what: str, *, quiet: bool) -> Iterator[None]:
    """Says what takes a while; in a terminal the line goes away when it is done."""
    if quiet:
        yield
        return
    # No spinner: it needs a thread, and starting Spark forks this process.
    passing = sys.stderr.isatty()
    print(what, file=sys.stderr, end="" if passing else "\n", flush=True)
    try:
        yield
    finally:
        if passing:
            print("\r\x1b[K", file=sys.stderr, end="", flush=True)


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
