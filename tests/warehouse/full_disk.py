"""A disk that is full, for this process: what writes to it fails from a given step on.

A step is the opening, writing, syncing, linking or renaming of a file, the making of a folder, and a commit of
deltalake: before it has done anything, and after it has made its version (a checkpoint that did not fit).
"""

import errno
import os
from collections.abc import Callable
from io import FileIO
from typing import Any

import pytest
from deltalake import DeltaTable

from viewkeeper.lake.log import store
from viewkeeper.lake.tables import delta_table


class FullDisk:
    """Counts the steps while `watching`; from step `full_at` on they fail, `times` often."""

    def __init__(self, patch: pytest.MonkeyPatch, *, deleting_fails: bool = False) -> None:
        self.watching, self.full_at, self.times = False, 10**9, 10**9
        self.steps: list[str] = []
        for name in ("fsync", "link", "replace", "rename", "mkdir"):
            patch.setattr(os, name, self._failing(f"os.{name}", getattr(os, name)))
        if deleting_fails:
            for name in ("unlink", "rmdir"):
                patch.setattr(os, name, self._failing(f"os.{name}", getattr(os, name)))
        patch.setattr(store, "open", self._open, raising=False)
        patch.setattr(
            delta_table,
            "create_table_with_add_actions",
            self._failing_commit("create_table", delta_table.create_table_with_add_actions),
        )
        for name in ("create_write_transaction", "restore"):
            patch.setattr(DeltaTable, name, self._failing_commit(name, getattr(DeltaTable, name)))

    def fill(self, at: int, times: int = 10**9) -> None:
        """Be full from a step on, counted from now."""
        self.steps.clear()
        self.watching, self.full_at, self.times = True, at, times

    def make_room(self) -> None:
        self.watching = False

    def _fails(self, what: str) -> bool:
        if not self.watching:
            return False
        self.steps.append(what)
        if len(self.steps) <= self.full_at or self.times <= 0:
            return False
        self.times -= 1
        return True

    def _failing(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*args: Any, **options: Any) -> Any:
            if self._fails(what):
                raise _no_space()
            return function(*args, **options)

        return failing

    def _failing_commit(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*args: Any, **options: Any) -> Any:
            if self._fails(f"before {what}"):
                raise OSError(_TOLD_BY_DELTALAKE)
            result = function(*args, **options)
            if self._fails(f"after {what}"):
                raise OSError(_TOLD_BY_DELTALAKE)
            return result

        return failing

    def _open(self, path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if "r" in mode or "a" in mode:
            return open(path, mode, *args, **options)
        if self._fails("open"):
            raise _no_space()
        return _Torn(path, mode) if self._fails("write") else open(path, mode, *args, **options)


class _Torn(FileIO):
    """A file of which the first half fits."""

    def write(self, content: Any) -> int:
        super().write(content[: len(content) // 2])
        raise _no_space()


def _no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# As it is: no number, several lines, colours.
_TOLD_BY_DELTALAKE = (
    "Generic LocalFileSystem error\n"
    "          \x1b[31m↳\x1b[0m Unable to copy data to file\n"
    "           \x1b[31m↳\x1b[0m No space left on device (os error 28)\n"
)
