"""Views that are not maintained any more, and why: `_viewkeeper/halted/VIEW.json`.

Their rows stay as they are, at the state that they had; `reload` recreates them.
"""

from dataclasses import dataclass

from viewkeeper.clock import now
from viewkeeper.errors import DamagedWarehouse
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.record import seal, unseal
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.sources.layout import VIEW

HALTED = f"{HOME}/halted"


@dataclass(frozen=True)
class Halt:
    """Why and when a view was halted, and the last state that it is right at."""

    view: str
    reason: str
    state: int
    time: str
    recomputable: bool = False
    """whether the view is only to be computed again from its sources, which the next run does"""


class Halts:
    """The halted views of one warehouse."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def files(self) -> tuple[str, ...]:
        """One for each: others mean that other views are halted."""
        return tuple(file for file in sorted(self._store.names(HALTED)) if file.endswith(".json"))

    def all(self) -> dict[str, Halt]:
        halts = [self._read(file) for file in self.files()]
        return {halt.view: halt for halt in halts}

    def add(self, view: str, folder: str, reason: str, state: int, *, recomputable: bool = False) -> None:
        told = {"view": view, "reason": reason.replace(VIEW, view), "state": state, "time": now().isoformat()}
        self._store.write(_file(folder), seal({**told, "recomputable": recomputable}))

    def remove(self, folder: str) -> None:
        self._store.delete(_file(folder))

    def _read(self, file: str) -> Halt:
        try:
            told = unseal(self._store.read(f"{HALTED}/{file}"))
            return Halt(told["view"], told["reason"], told["state"], told["time"], told.get("recomputable", False))
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedWarehouse(
                f"{self._store.path(HALTED) / file} is damaged: {error}", "delete it, and reload the view"
            ) from error


def _file(folder: str) -> str:
    """Views have odd names, their folders do not."""
    return f"{HALTED}/{folder.rpartition('/')[2]}.json"
