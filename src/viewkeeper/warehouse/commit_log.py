"""The commit log: `_viewkeeper/commits/%020d.json`, one record per commit.

A commit is there when its record is. Records are contiguous: they are added at the end by `create_exclusive`, which
fails if another writer was faster, and removed from the beginning by vacuum.
"""

import json
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
from viewkeeper.warehouse.record import FORMAT, Record, decode, encode
from viewkeeper.warehouse.store import TEMPORARY, LocalStore

HOME = "_viewkeeper"
FORMAT_FILE = f"{HOME}/format.json"
COMMITS = f"{HOME}/commits"


def record_name(commit: int) -> str:
    """The file of a record."""
    return f"{COMMITS}/{commit:020d}.json"


class CommitLog:
    """The records of one warehouse."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self._known: int | None = None
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
        # Records are contiguous, so from a known one onwards it is enough to look for the first that is missing.
        if self._known is None or not self.store.exists(record_name(self._known)):
            numbers = self.numbers()
            return numbers[-1] if numbers else None
        low, step = self._known, 1
        while self.store.exists(record_name(low + step)):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.store.exists(record_name(middle)) else (low, middle)
        return low

    def numbers(self) -> list[int]:
        """The numbers of all records, in order; DamagedWarehouse if one in between is missing."""
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
                raise DamagedWarehouse(
                    f"{self.store.path(record_name(earlier + 1))} is missing",
                    "put it back from a backup; without one, move the records before it away too: "
                    "the states that they hold can then no longer be read",
                )
        return numbers

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
                "see to the disk; do not repeat what was committed",
            ) from error
        self._known = record.commit

    def find_state(self, group: str, state: int, *, since: int, newest: int) -> Record:
        """The first record that holds a state, among those from `since` to `newest`; StateGone if vacuum removed it.

        A number that the group has skipped is held by the record that skipped it: what that adds comes later.
        """
        numbers = [number for number in self.numbers() if since <= number <= newest]
        low, high = 0, len(numbers) - 1
        while low < high:
            middle = (low + high) // 2
            there = self.retained(numbers[middle]).groups.get(group)
            low, high = (middle + 1, high) if there is None or there.last < state else (low, middle)
        record = self.retained(numbers[low])
        there = record.groups.get(group)
        if there is None or state > there.last:
            raise state_gone(group, state)
        skipped = low > 0 and group in self.retained(numbers[low - 1]).groups
        if state < min(there.first, there.last) and not skipped:
            raise state_gone(group, state)
        return record

    def retained(self, commit: int) -> Record:
        """A record that was there; StateGone if vacuum has removed it."""
        try:
            return self.record(commit)
        except DamagedWarehouse:
            if self.store.exists(record_name(commit)):
                raise
            raise StateGone(f"commit {commit} has been vacuumed meanwhile", "read a newer state") from None

    def remove_before(self, commit: int) -> int:
        """Delete the records before a commit, oldest first; the number of them."""
        gone = [number for number in self.numbers() if number < commit]
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
        store.create_exclusive(FORMAT_FILE, json.dumps({"format": FORMAT, "id": unique_id()}).encode())


def read_format(store: LocalStore) -> str:
    """The id of a warehouse; FormatTooNew, DamagedWarehouse."""
    path = store.path(FORMAT_FILE)
    try:
        told = json.loads(store.read(FORMAT_FILE))
        version, identity = int(told["format"]), str(told["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedWarehouse(f"{path} is damaged", "put it back from a backup") from error
    if version > FORMAT:
        raise FormatTooNew(
            f"{path}: the warehouse has format {version}, and this viewkeeper reads up to {FORMAT}",
            "install a later viewkeeper",
        )
    return identity
