"""Files that are there whole or not at all, whenever the process is killed.

temporary file, fsync, rename or link, fsync of the folder
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from viewkeeper.clock import unique_id
from viewkeeper.errors import StorageFailure

TEMPORARY = ".vk-tmp-"
_LOCK = "lock"


def temporary_name(folder: Path) -> Path:
    """A name in a folder that nobody else has; `sweep_temporaries` removes what a crash leaves under such a name."""
    return folder / f"{TEMPORARY}{unique_id()}"


def create_exclusive(path: Path, content: dict[str, Any]) -> bool:
    """Write a JSON file that must not be there yet; False if it is."""
    with _written(path, content) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        sync_folder(path.parent)
        return True


def replace(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file, or put it in place of the one that is there."""
    with _written(path, content) as temporary:
        os.replace(temporary, path)
        sync_folder(path.parent)


def move_into_place(temporary: Path, path: Path) -> None:
    """Give a file that is complete its name."""
    with explained(path):
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)


def read_json(path: Path) -> Any:
    """What a file holds; None if there is none. It was written whole, so anything else is damage."""
    with explained(path):
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StorageFailure(f"{path} is damaged: {error}", "remove the source and add it again") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process."""
    make_folder(folder)
    with explained(folder), open(folder / _LOCK, "ab", opener=_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sweep_temporaries(folder: Path) -> None:
    """Remove what a crash has left; only while the lock is held."""
    with explained(folder):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name.startswith(TEMPORARY):
                path.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, which nobody else may read: they hold copies of what is at a source."""
    with explained(folder):
        if not folder.is_dir():
            make_folder(folder.parent)
            folder.mkdir(0o700, exist_ok=True)


def new_file(path: Path) -> Path:
    """The path of a file that something else is about to write: it is there now, empty, and nobody else may read it."""
    with explained(path):
        os.close(_private(str(path), os.O_CREAT | os.O_WRONLY))
    return path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """What the operating system says of the warehouse's own folder."""
    try:
        yield
    except OSError as error:
        raise StorageFailure(
            f"{error.filename or path}: {error.strerror or error}", "check the disk of the warehouse, and try again"
        ) from error


@contextmanager
def _written(path: Path, content: dict[str, Any]) -> Iterator[Path]:
    make_folder(path.parent)
    temporary = temporary_name(path.parent)
    with explained(path):
        try:
            with open(temporary, "xb", opener=_private) as file:
                file.write(json.dumps(content).encode())
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
