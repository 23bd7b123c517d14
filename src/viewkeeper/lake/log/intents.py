"""The files that the writer is about to make, each named before it is there: what a killed one may have left.

    {"writer": ..., "boot": ..., "place": ..., "commit": 41}      who writes, where, and after which commit
    "views/orders/delta-00000000000000000042-..."                 one line for each file
    "_viewkeeper/commits/00000000000000000042.json"               the record comes last: here 41 is certainly made

So an opening after a kill looks for these names, and not through all that the warehouse holds. Nothing is synced here:
what a killed process has written stays written. After the machine itself has stopped, in a copy of the warehouse, or if
a version without intents has written since, the list is not relied upon, and all names are looked through. A file that
would be missed costs its space and nothing else: names are never used again.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from viewkeeper.errors import DamagedWarehouse, StorageFailure
from viewkeeper.lake.log.catalog import CATALOG, VIEWS
from viewkeeper.lake.log.commit_log import COMMITS, HOME
from viewkeeper.lake.log.store import LocalStore, explained

INTENTS = f"{HOME}/intents.log"
LARGE = (VIEWS, COMMITS, CATALOG, f"{HOME}/changes")
"""the folders that grow with the commits; what else there is, is listed"""
_PREFIXES = tuple(f"{folder}/" for folder in LARGE)
MOST_BYTES = 1 << 20
"""after which the list begins again"""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Left:
    """What a writer may have left: the files that it named, and a commit that it certainly has made."""

    names: tuple[str, ...]
    commit: int


class Intents:
    """The list of one writer, who is `holder` of the lock. One that cannot be written, as on a full disk, is emptied:
    then it is not relied upon."""

    def __init__(self, store: LocalStore, holder: Mapping[str, object]) -> None:
        self._store, self._holder = store, holder
        self._file: int | None = None
        self._bytes = 0

    def __enter__(self) -> Self:
        with suppress(StorageFailure), explained(path := self._store.path(INTENTS)):
            # A new file: a backup may hold on to the one before by a link.
            self._store.delete(INTENTS)
            self._store.new_file(INTENTS)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def begin(self, commit: int) -> None:
        """A list with nothing on it, of a writer that is at this commit."""
        self._empty()
        header = {"writer": self._holder, "boot": _boot(), "place": _place(self._store), "commit": commit}
        self._write([header])

    def begin_if_long(self, commit: int) -> None:
        """Between two commits what is on the list has become part of one, or was removed."""
        if self._bytes > MOST_BYTES:
            self.begin(commit)

    def note(self, names: Sequence[str]) -> None:
        """Files, or folders with files, that are about to be there."""
        if self._bytes and (large := [name for name in names if name.startswith(_PREFIXES)]):
            self._write(large)

    def _write(self, lines: Sequence[object]) -> None:
        if self._file is None:
            return
        content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        # One call: what several threads write does not mix.
        with suppress(OSError):
            if os.write(self._file, content) == len(content):
                self._bytes += len(content)
                return
        self._empty()

    def _empty(self) -> None:
        self._bytes = 0
        if self._file is not None:
            with explained(self._store.path(INTENTS)):
                os.ftruncate(self._file, 0)


def left_by(store: LocalStore, holder: object) -> Left | None:
    """What the writer that last held the lock may have left; None if there is no list of it to be relied upon."""
    try:
        lines: list[Any] = [json.loads(line) for line in store.read(INTENTS).splitlines()]
        header, names = lines[0], [str(name) for name in lines[1:]]
        commit = int(header["commit"])
        boot = _boot()
        if boot is None or (header["writer"], header["boot"], header["place"]) != (holder, boot, _place(store)):
            return None
    except (ValueError, KeyError, TypeError, IndexError, DamagedWarehouse):
        return None
    records = [int(name.removeprefix(f"{COMMITS}/")[:20]) for name in names if _is_record(name)]
    return Left(tuple(names), max([commit, *(number - 1 for number in records)]))


def _is_record(name: str) -> bool:
    return name.startswith(f"{COMMITS}/") and name.removeprefix(f"{COMMITS}/")[:20].isdecimal()


def _boot() -> str | None:
    """What tells this run of the machine from others; None where that is not known."""
    try:
        return _BOOT.read_text().strip() or None
    except OSError:
        return None


def _place(store: LocalStore) -> list[int]:
    """What tells the folder of a warehouse from that of a copy."""
    about = os.stat(store.root)
    return [about.st_dev, about.st_ino]
