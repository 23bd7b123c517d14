"""What is wrong with a warehouse now, each with the way out.

halted         a view is not maintained any more
failed         the maintenance of a group stopped with an error
missing        a file of the last commit is not there, or is shorter than it was written
overdue        a part of a global transaction has not come for longer than a second
unreachable    a source does not answer, or refuses the connection
"""

import shlex
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from viewkeeper.clock import monotonic
from viewkeeper.errors import DamagedWarehouse, ViewkeeperError, as_viewkeeper_error
from viewkeeper.lake.log.halts import Halt
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.maintenance.incomplete import GroupWait
from viewkeeper.sources.base import Source

HALTED, FAILED, MISSING, OVERDUE, UNREACHABLE = "halted", "failed", "missing", "overdue", "unreachable"
MOST_LOOKS = 3
"""how often files are looked for while another process deletes what its newer commits no longer need"""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: of which kind, with what (a view, group, file, source or global transaction), and the
    way out."""

    kind: str
    name: str
    detail: str
    hint: str


def halted_views(halts: Mapping[str, Halt]) -> Iterator[Problem]:
    for view, halt in sorted(halts.items(), key=lambda one: one[1].time):
        yield Problem(HALTED, view, halt.reason, f"viewkeeper reload {shlex.quote(view)}")


def failed_groups(failures: Mapping[str, str]) -> Iterator[Problem]:
    for group, reason in failures.items():
        yield Problem(FAILED, group, reason, "its views are at their last state; the next catch-up or run tries again")


def overdue_waits(waits: tuple[GroupWait, ...]) -> Iterator[Problem]:
    for one in waits:
        if one.wait.overdue:
            missing = " and ".join(dict.fromkeys(one.wait.missing))
            yield Problem(
                OVERDUE,
                one.wait.id,
                f"{', '.join(one.views)} waits for the part of global transaction {one.wait.id} from {missing}",
                f"commit that part, or viewkeeper give-up {shlex.quote(one.wait.id)}",
            )


def missing_files(files: Files, record: Record) -> Iterator[Problem]:
    """Those of the last commit, looked at without being read."""
    found = list(_missing_in(files, record))
    for _ in range(MOST_LOOKS):
        newest = files.log.last()
        if not found or newest.commit == record.commit:
            break
        record, found = newest, list(_missing_in(files, newest))
    yield from found


def _missing_in(files: Files, record: Record) -> Iterator[Problem]:
    for name, view in files.catalogs.read(record.catalog).items():
        try:
            listed = files.tables.files(view, record.tables[name])
        except DamagedWarehouse as error:
            yield Problem(MISSING, name, error.detail, error.hint)
            continue
        for file in listed:
            path = files.store.path(f"{view.folder}/{file.name}")
            try:
                size = path.stat().st_size
            except OSError as error:
                what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            else:
                what = "" if size == file.size else f"has {size} bytes, and was written with {file.size}"
            if what:
                hint = "put it back from a backup, or reload the view that it belongs to"
                yield Problem(MISSING, str(path), f"{path} {what}", hint)


def unreachable_sources(sources: Mapping[str, Source], patience: float) -> Iterator[Problem]:
    """Those that do not answer within so many seconds, all asked at the same time."""
    answers: SimpleQueue[tuple[str, ViewkeeperError | None]] = SimpleQueue()
    for name, source in sources.items():
        threading.Thread(target=_ask, args=(name, source, answers), name=f"check of {name}", daemon=True).start()
    waiting, until = dict.fromkeys(sources), monotonic() + patience
    found = {}
    while waiting:
        try:
            name, error = answers.get(timeout=max(until - monotonic(), 0.0))
        except Empty:
            break
        del waiting[name]
        if error is not None:
            found[name] = Problem(UNREACHABLE, name, error.detail, error.hint or f"viewkeeper doctor {name}")
    for name in waiting:
        detail = f"{name} has not answered within {patience:g} seconds"
        found[name] = Problem(UNREACHABLE, name, detail, "see whether its server runs and can be reached from here")
    yield from (found[name] for name in sources if name in found)


def _ask(name: str, source: Source, answers: "SimpleQueue[tuple[str, ViewkeeperError | None]]") -> None:
    try:
        source.reach()
    except Exception as error:
        answers.put((name, as_viewkeeper_error(error, f"reaching {name}")))
    else:
        answers.put((name, None))
