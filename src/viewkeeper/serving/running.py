"""What the process that maintains the views is doing, for others to see: `_viewkeeper/running.json`.

It is written about once a second while `run` is at work, and deleted when that ends. After a kill it stays, and says of
whom and when it is.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from viewkeeper.clock import monotonic, now
from viewkeeper.errors import WarehouseError
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.pins import process_is_there
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.mediator.report import GroupReport, Report, SourceReport, ViewReport
from viewkeeper.mediator.waits import GivenUp, Wait

RUNNING = f"{HOME}/running.json"
EVERY = 1.0


@dataclass(frozen=True)
class Running:
    """What a process said, and when."""

    pid: int
    host: str
    since: str
    time: str
    alive: bool
    """whether the process may still be there"""
    report: Report


class RunningFile:
    """The file of one warehouse."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def read(self) -> Running | None:
        """What was said last. A file that cannot be read says nothing: nothing depends on it."""
        try:
            told = json.loads(self._store.read(RUNNING))
            return Running(
                told["pid"],
                told["host"],
                told["since"],
                told["time"],
                process_is_there(told["host"], told["pid"]),
                _report(told["report"]),
            )
        except (WarehouseError, ValueError, KeyError, TypeError):
            return None

    @contextmanager
    def told(self) -> Iterator[Callable[[Report], None]]:
        """A function to call as often as one likes with what is going on."""
        began, last = now().isoformat(), float("-inf")

        def tell(report: Report) -> None:
            nonlocal last
            if monotonic() - last < EVERY:
                return
            last = monotonic()
            told = {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": began,
                "time": now().isoformat(),
                "report": asdict(report),
            }
            # Views are maintained even if nobody can be told of it.
            with suppress(WarehouseError):
                self._store.write(RUNNING, json.dumps(told).encode())

        try:
            yield tell
        finally:
            with suppress(WarehouseError):
                self._store.delete(RUNNING)


def _report(told: dict[str, Any]) -> Report:
    return Report(
        tuple(SourceReport(**one) for one in told["sources"]),
        tuple(_group_report(one) for one in told["groups"]),
        told["halted"],
        tuple(ViewReport(**one) for one in told["views"]),
    )


def _group_report(told: dict[str, Any]) -> GroupReport:
    waits = tuple(Wait(**_with_tuples(one)) for one in told["waits"])
    given_up = tuple(GivenUp(**_with_tuples(one)) for one in told["given_up"])
    return GroupReport(**{**told, "views": tuple(told["views"]), "waits": waits, "given_up": given_up})


def _with_tuples(told: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists."""
    places: dict[str, Any] = {name: tuple(map(tuple, told[name])) for name in ("arrived", "late") if name in told}
    return {**told, "missing": tuple(told["missing"]), **places}
