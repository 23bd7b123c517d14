"""Groups whose maintenance stopped with an error, and why: `_viewkeeper/failed/HASH.json`.

Their views stay at the last commit, and the next run tries again from there. A failure holds while its group is where
it was: with the next state, or the next position, it is history.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from viewkeeper.clock import now
from viewkeeper.errors import WarehouseError
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.record import Record, seal, unseal
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.messages import Position

FAILED = f"{HOME}/failed"


@dataclass(frozen=True)
class Failure:
    """Why and when the maintenance of a group stopped, and where it was."""

    group: str
    reason: str
    time: str
    state: int
    vector: Mapping[str, Position]


class Failures:
    """The failed groups of one warehouse."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def of(self, record: Record) -> list[Failure]:
        """Those that hold at a commit."""
        found = [self._read(file) for file in sorted(self._store.names(FAILED)) if file.endswith(".json")]
        return [one for one in found if one is not None and _is_where_it_was(one, record)]

    def add(self, group: str, reason: str, record: Record) -> None:
        at = record.groups[group]
        failure = Failure(group, reason, now().isoformat(), at.last, dict(at.vector))
        self._store.write(_file(group), seal(dict(vars(failure))))

    def remove(self, group: str) -> None:
        self._store.delete(_file(group))

    def _read(self, file: str) -> Failure | None:
        """A file that cannot be read says nothing: nothing depends on it."""
        try:
            return Failure(**unseal(self._store.read(f"{FAILED}/{file}")))
        except (WarehouseError, ValueError, TypeError):
            return None


def _is_where_it_was(failure: Failure, record: Record) -> bool:
    at = record.groups.get(failure.group)
    return at is not None and (at.last, dict(at.vector)) == (failure.state, dict(failure.vector))


def _file(group: str) -> str:
    """Groups have odd names."""
    return f"{FAILED}/{sha256(group.encode()).hexdigest()[:32]}.json"
