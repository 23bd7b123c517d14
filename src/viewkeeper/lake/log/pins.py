"""Leases of readers, `_viewkeeper/pins/`: what a pinned commit needs is not deleted.

A pin ends when its reader says so, when its process is gone (on the same machine), or when it has not been renewed for
a day.
"""

import errno
import json
import os
import socket
from contextlib import suppress
from datetime import datetime, timedelta

from viewkeeper.clock import now, unique_id
from viewkeeper.errors import StorageFailure
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.store import LocalStore

PINS = f"{HOME}/pins"
LEASE = timedelta(days=1)


class Pin:
    """One lease on one commit."""

    def __init__(self, store: LocalStore, commit: int) -> None:
        self._store, self.commit = store, commit
        self._name = f"{PINS}/{unique_id()}.json"
        self._until = now()
        self.renew()

    def renew(self) -> None:
        """Extend the lease if half of it is over."""
        moment = now()
        if self._until - moment > LEASE / 2:
            return
        self._until = moment + LEASE
        content: dict[str, object] = {
            "commit": self.commit,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "until": self._until.isoformat(),
        }
        self._store.write(self._name, json.dumps(content).encode())

    def release(self) -> None:
        """Give the lease back."""
        self._store.delete(self._name)


def pin(store: LocalStore, commit: int) -> Pin | None:
    """A lease on a commit; None where this user may only read: there the retention alone keeps its files."""
    try:
        return Pin(store, commit)
    except StorageFailure as error:
        if getattr(error.__cause__, "errno", None) in (errno.EROFS, errno.EACCES, errno.EPERM):
            return None
        raise


def pinned_commits(store: LocalStore) -> list[int]:
    """The commits that living readers have pinned; pins of the dead are removed on the way."""
    commits = []
    for file in store.files(PINS):
        try:
            told = json.loads(store.path(file.name).read_bytes())
            commit, alive = int(told["commit"]), _is_alive(told)
        except OSError:
            continue  # released meanwhile
        except (ValueError, KeyError, TypeError):
            # Still being written; or by one who was killed at it.
            commit, alive = -1, file.modified > (now() - LEASE).timestamp()
        if not alive:
            with suppress(StorageFailure):  # somebody who may write removes it
                store.delete(file.name)
        elif commit >= 0:
            commits.append(commit)
    return commits


def _is_alive(told: dict[str, str]) -> bool:
    if datetime.fromisoformat(told["until"]) < now():
        return False
    return process_is_there(told["host"], int(told["pid"]))


def process_is_there(host: str, pid: int) -> bool:
    """Whether a process may be running; of another machine nothing is known."""
    if host != socket.gethostname():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
