"""The commit log: `_viewkeeper/commits/%020d.json`, one record per commit.

A commit is there when its record is. Records are contiguous: they are added at the end by `create_exclusive`, which
fails if another writer was faster, and removed from the beginning by vacuum.

    first ... checkpoint ... newest       checkpoint.json has the number of a record, written now and then

Every record is complete, so the checkpoint is a number: the newest record is found from there by doubling steps, the
first one and the one that made a state by bisection. Whatever is read costs the logarithm of the number of commits. A
checkpoint that is missing or damaged is found again by listing the folder.
"""

import json
from bisect import bisect_left
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise

from viewkeeper.clock import unique_id
from viewkeeper.errors import (
    DamagedWarehouse,
    FormatTooNew,
    NotAWarehouse,
    StateGone,
    StorageFailure,
    WriterPresent,
)
from viewkeeper.lake.log.record import FORMAT, Record, decode, encode, seal, unseal
from viewkeeper.lake.log.store import TEMPORARY, LocalStore

HOME = "_viewkeeper"
FORMAT_FILE = f"{HOME}/format.json"
COMMITS = f"{HOME}/commits"
CHECKPOINT = f"{HOME}/checkpoint.json"
BETWEEN_CHECKPOINTS = 64
"""commits: a reader looks for the newest record in twice the logarithm of it"""


def record_name(commit: int) -> str:
    """The file of a record."""
    return f"{COMMITS}/{commit:020d}.json"


class CommitLog:
    """The records of one warehouse."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self._known: int | None = None
        self._known_first = 0
        self.record = lru_cache(maxsize=256)(self._read)

    def last(self) -> Record:
        """The newest record."""
        self._known = self._newest()
        if self._known is None:
            raise DamagedWarehouse(
                f"{self.store.path(COMMITS)} has no commit record",
                "put the folder back from a backup; a warehouse that was never written to can be deleted",
            )
        return self.record(self._known)

    def _newest(self) -> int | None:
        known = self._checkpoint() if self._known is None else self._known
        if known is None or not self._is_there(known):
            listed = self.listed()
            return listed[-1] if listed else None
        # Records are contiguous, so from a known one onwards it is enough to look for the first that is missing.
        low, step = known, 1
        while self._is_there(low + step):
            low, step = low + step, step * 2
        return bisect_left(range(low + step), True, lo=low + 1, key=lambda commit: not self._is_there(commit)) - 1

    def _is_there(self, commit: int) -> bool:
        return self.store.exists(record_name(commit))

    def _checkpoint(self) -> int | None:
        """The number of a record that was there; None if that is not known."""
        try:
            commit = unseal(self.store.read(CHECKPOINT))["commit"]
        except (ValueError, KeyError, DamagedWarehouse):
            return None
        return commit if isinstance(commit, int) and commit >= 0 else None

    def write_checkpoint(self, commit: int) -> None:
        """Say where a record is. That it cannot be said costs the next opening a listing, and nothing else."""
        with suppress(StorageFailure):
            self.store.write(CHECKPOINT, seal({"format": FORMAT, "commit": commit}))

    def numbers(self) -> range:
        """The numbers of all records; none is read, and the folder is not listed."""
        newest = self._newest()
        if newest is None:
            return range(0)
        self._known = newest
        return range(self._first(newest), newest + 1)

    def _first(self, newest: int) -> int:
        first = self._known_first
        if not self._is_there(first) or (first and self._is_there(first - 1)):
            first = bisect_left(range(newest), True, key=self._is_there)
        if first > min((table.kept for table in self.record(newest).tables.values()), default=first):
            # Nothing announced that it would go: it was moved away with those before it, or it is missing.
            first = self.listed().start
        self._known_first = first
        return first

    def listed(self) -> range:
        """The numbers of all records, by listing the folder; DamagedWarehouse if one in between is missing."""
        names = [name for name in self.store.names(COMMITS) if not name.startswith(TEMPORARY)]
        try:
            numbers = [int(name.removesuffix(".json")) for name in names]
        except ValueError:
            raise DamagedWarehouse(
                f"{self.store.path(COMMITS)} holds something that is not a commit record: {', '.join(names[:5])}",
                "move it away",
            ) from None
        for earlier, later in pairwise(numbers):
            if later != earlier + 1:
                raise self._missing(earlier + 1)
        return range(numbers[0], numbers[-1] + 1) if numbers else range(0)

    def _missing(self, commit: int) -> DamagedWarehouse:
        return DamagedWarehouse(
            f"{self.store.path(record_name(commit))} is missing",
            "put it back from a backup; without one, move the records before it away too: "
            "the states that they hold can then no longer be read",
        )

    def _read(self, commit: int) -> Record:
        path = self.store.path(record_name(commit))
        try:
            record = decode(self.store.read(record_name(commit)))
        except ValueError as error:
            raise DamagedWarehouse(
                f"the commit record {path} is damaged: {error}",
                "put it back from a backup; or move it away to go back to the commit before it",
            ) from error
        if record.commit != commit:
            raise DamagedWarehouse(f"{path} holds commit {record.commit}", "put it back from a backup")
        return record

    def append(self, record: Record) -> None:
        """Make a commit true; WriterPresent if another writer already has this number."""
        try:
            self.store.create_exclusive(record_name(record.commit), encode(record))
        except FileExistsError:
            raise overtaken(self.store, record.commit) from None
        except StorageFailure as error:
            if not self.store.exists(record_name(record.commit)):
                raise
            # The disk neither confirmed it nor let it be taken back. Readers see it, so it counts.
            raise StorageFailure(
                f"commit {record.commit} was made, and may be lost if the machine stops: {error.detail}",
                "check the disk; do not repeat what was committed",
            ) from error
        self._known = record.commit
        if record.commit and record.commit % BETWEEN_CHECKPOINTS == 0:
            self.write_checkpoint(record.commit)

    def find_state(self, group: str, state: int, *, since: int, newest: int) -> Record:
        """The first record that holds a state, among those from `since` to `newest`; StateGone if vacuum removed it.

        A number that the group has skipped is held by the record that skipped it: what that adds comes later.
        """
        there = self.numbers()
        numbers = range(max(since, there.start), min(newest, there.stop - 1) + 1)
        if not numbers:
            raise state_gone(group, state)
        record = self.retained(numbers[min(self._place(group, state, numbers), len(numbers) - 1)])
        there_then = record.groups.get(group)
        if there_then is None or state > there_then.last:
            raise state_gone(group, state)
        skipped = record.commit > numbers.start and group in self.retained(record.commit - 1).groups
        if state < min(there_then.first, there_then.last) and not skipped:
            raise state_gone(group, state)
        return record

    def _place(self, group: str, state: int, numbers: range) -> int:
        """How many of these records do not have a state of a group yet."""
        return bisect_left(numbers, True, key=lambda commit: self._has(group, state, commit))

    def _has(self, group: str, state: int, commit: int) -> bool:
        there = self.retained(commit).groups.get(group)
        return there is not None and there.last >= state

    def maker(self, group: str, record: Record, since: int) -> Record:
        """The first record, from `since` on, in which the last state of a group is what it is in this one."""
        state, newest, step = record.groups[group].last, record.commit, 1
        if record.groups[group].steps:
            return record
        while newest - step >= since and self._has(group, state, newest - step):
            newest, step = newest - step, step * 2
        numbers = range(max(since, newest - step + 1), newest)
        return self.retained(newest - len(numbers) + self._place(group, state, numbers))

    def retained(self, commit: int) -> Record:
        """A record that was there; StateGone if vacuum has removed it."""
        try:
            return self.record(commit)
        except DamagedWarehouse:
            if self._is_there(commit) or commit in self.listed():
                raise
            raise StateGone(f"commit {commit} has been vacuumed meanwhile", "read a newer state") from None

    def remove_before(self, commit: int) -> int:
        """Delete the records before a commit, oldest first; the number of them."""
        there = self.listed()
        # A checkpoint that is gone would cost every opening a listing.
        self.write_checkpoint(there[-1])
        gone = [number for number in there if number < commit]
        for number in gone:
            self.store.delete(record_name(number))
        self.record.cache_clear()
        return len(gone)


def overtaken(store: LocalStore, commit: int) -> WriterPresent:
    """The error for a writer whose next commit was made by somebody else."""
    return WriterPresent(
        f"commit {commit} of {store} was made by another writer",
        "open the warehouse again: this writer was taken for dead",
    )


def state_gone(of: str, state: int) -> StateGone:
    """The error for a state that cannot be read any more, or not yet."""
    return StateGone(f"there is no state {state} of {of}", f"'viewkeeper states {of}' lists those that can be read")


def create_format(store: LocalStore) -> None:
    """Make a folder a warehouse; NotAWarehouse if there is something else in it."""
    others = [name for name in store.names("") if name != HOME]
    inside = [name for name in store.names(HOME) if not name.startswith(TEMPORARY)]
    if others or inside:
        raise NotAWarehouse(
            f"{store} is not a warehouse: there is no {FORMAT_FILE} in it, and it is not empty",
            "name an empty or a new folder, or the folder of a warehouse",
        )
    with suppress(FileExistsError):  # somebody else makes it at the same time
        store.create_exclusive(FORMAT_FILE, seal({"format": FORMAT, "id": unique_id()}))


def read_format(store: LocalStore) -> str:
    """The id of a warehouse; FormatTooNew, DamagedWarehouse."""
    path = store.path(FORMAT_FILE)
    try:
        told = json.loads(content := store.read(FORMAT_FILE))
        version, identity = int(told["format"]), str(told["id"])
        if "crc" in told and version <= FORMAT:  # those of earlier versions have none
            unseal(content)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedWarehouse(f"{path} is damaged", "put it back from a backup") from error
    if version > FORMAT:
        raise FormatTooNew(
            f"{path}: the warehouse has format {version}, and this viewkeeper reads up to {FORMAT}",
            "install a later viewkeeper",
        )
    return identity
