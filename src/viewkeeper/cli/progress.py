"""Progress of long work: a bar in a terminal, plain lines elsewhere, nothing with --json."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
