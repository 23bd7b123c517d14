"""Ctrl-C: what is under way is undone, and people are told at which commit the warehouse is.

A commit is all or nothing (`lake/writer.py`), so there is nothing to clear up here: the interrupt goes through
every `with` block on its way, and what it finds half done is put back.
"""

from pathlib import Path

_written: Path | None = None
"""the warehouse that this process writes to"""


def writing_to(path: Path) -> None:
    """From now on an interrupt tells the commit of this warehouse."""
    global _written
    _written = path


def last_commit() -> int | None:
    """The commit that the warehouse of this process is at; None if it writes to none, or that cannot be known."""
    if _written is None:
        return None
    from viewkeeper.errors import ViewkeeperError
    from viewkeeper.lake.log.commit_log import CommitLog
    from viewkeeper.lake.log.store import open_store

    try:
        return CommitLog(open_store(_written)).last().commit
    except ViewkeeperError:
        return None


def was_interrupted(error: BaseException) -> bool:
    """Whether an error is only what became of an interrupt on its way: of a Spark job that was cancelled, say."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        if isinstance(at, KeyboardInterrupt):
            return True
        seen.add(id(at))
        at = at.__cause__ or at.__context__
    return False
