"""The files of a warehouse, by name relative to its root.

    create_exclusive(name, bytes)      all of it or nothing, and only if the name is free

is what makes a commit atomic and keeps a second writer out. Locally it is a temporary file, fsync, a hard link (which
fails if the name is taken) and fsync of the folder.

    permissions of a new folder  =  those of `_viewkeeper`, which is made 0700        of a new file: without x

so that nobody else reads a warehouse unless its owner said so: `chmod -R g+rX` holds for all that comes.
"""

import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from viewkeeper.clock import unique_id
from viewkeeper.errors import DamagedWarehouse, NotAWarehouse, StorageFailure, UsageError, WriterPresent

TEMPORARY = ".vk-tmp-"
PRIVATE, ANYBODYS = 0o700, 0o777
"""permissions of folders; of what is anybody's, the umask decides"""
_LIKE = "_viewkeeper"
"""what is new gets the permissions of this folder"""
_ONLY_READS = "what only reads (status, query, states, plan, explain; in Python Warehouse.open(..., read_only=True))"


@dataclass(frozen=True)
class StoredFile:
    """A file of the warehouse: its name, its bytes, and when it was last changed (seconds since 1970)."""

    name: str
    size: int
    modified: float


class LocalStore:
    """A folder that the driver and all executors see under the same path.

    `permissions` are those of new folders; None is for a warehouse, whose own folder says them.
    """

    def __init__(self, root: Path, permissions: int | None = None) -> None:
        self.root, self._permissions = root, permissions
        self.left_something = False
        """whether a temporary file could not be deleted"""
        self.about_to_write: Callable[[Sequence[str]], None] = lambda _: None
        """is called with the names of files, and of folders that others fill with files, before they are made"""

    def __str__(self) -> str:
        return str(self.root)

    def path(self, name: str) -> Path:
        """Where a file is, on this machine; DamagedWarehouse if the name, or a link on the way, leads elsewhere."""
        place = str(self.root)
        for part in name.split("/"):
            if part == "..":
                raise _leads_out(self.root, name)
            place = f"{place}/{part}"
            if os.path.islink(place):
                raise _link(place)
        return Path(place)

    def spark_path(self, name: str) -> str:
        """The path that is handed to Spark: with a scheme, so that a cluster's default file system does not matter."""
        return f"file:{self.path(name)}"

    def spark_pattern(self, name: str) -> str:
        """The same for reading, where Spark takes what it is given for a pattern; turned off with `__globPaths__`, it
        reads every file as often as there are files."""
        return re.sub(_PATTERN, r"\\\g<0>", self.spark_path(name))

    def delta_path(self, name: str) -> str:
        """The path of a table that is handed to deltalake, which would follow the links in its log."""
        self.refuse_links(f"{name}/_delta_log")
        return str(self.path(name))

    # --- reading ---

    def read(self, name: str) -> bytes:
        with explained(self.path(name)):
            return self.path(name).read_bytes()

    def exists(self, name: str) -> bool:
        return self.path(name).exists()

    def names(self, folder: str) -> list[str]:
        """The names directly in a folder; none if there is no such folder."""
        with explained(self.path(folder)):
            try:
                return sorted(os.listdir(self.path(folder)))
            except FileNotFoundError:
                return []

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly in a folder."""
        return [name for name in self.names(folder) if self.path(f"{folder}/{name}").is_dir()]

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Every file in a folder and below it; DamagedWarehouse for a link, which may lead anywhere."""
        with explained(self.path(folder)):
            for entry in _files_below(self.path(folder)):
                try:
                    about = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # somebody else swept it
                    continue
                name = Path(entry.path).relative_to(self.root).as_posix()
                yield StoredFile(name, about.st_size, about.st_mtime)

    def refuse_links(self, folder: str) -> None:
        """DamagedWarehouse if there is a link in a folder or below it."""
        for _ in _files_below(self.path(folder)):
            pass

    def names_below(self, folder: str, besides: Iterable[str] = ()) -> Iterator[str]:
        """The name of every file in a folder and below it, as `files` has them; nothing else is asked of a file. Not of
        those in the folders `besides`."""
        left_out = set(besides)
        for place, folders, names in os.walk(self.path(folder)):
            within = Path(place).relative_to(self.root).as_posix()
            folders[:] = sorted(name for name in folders if f"{within}/{name}" not in left_out)
            yield from (f"{within}/{name}" for name in sorted(names))

    # --- writing ---

    def create_exclusive(self, name: str, content: bytes) -> None:
        """Write a file that must not be there yet; FileExistsError if it is."""
        path = self.path(name)
        with explained(path), self._temporary(name, content) as temporary:
            os.link(temporary, path)
            try:
                _sync_folder(path.parent)
            except OSError:
                # It may or may not be there after a power failure, so it must not be there now.
                path.unlink()
                raise

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or put it in place of the one that is there, all at once."""
        path = self.path(name)
        with explained(path), self._temporary(name, content) as temporary:
            os.replace(temporary, path)
            _sync_folder(path.parent)

    @contextmanager
    def _temporary(self, name: str, content: bytes) -> Iterator[Path]:
        path, called = self.path(name), f"{TEMPORARY}{unique_id()}"
        folder, slash, _ = name.rpartition("/")
        self.about_to_write((f"{folder}{slash}{called}", name))
        self._make_folder(path.parent)
        temporary = path.with_name(called)
        try:
            with open(temporary, "xb", opener=self._create) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            try:
                temporary.unlink(missing_ok=True)
            except OSError:  # the file that it was for stands; the next opening sweeps this one
                self.left_something = True

    def new_file(self, name: str) -> Path:
        """Where something else is about to write a file, which is there now, and empty."""
        path = self.path(name)
        with explained(path):
            self._make_folder(path.parent)
            os.close(self._create(str(path), os.O_CREAT | os.O_WRONLY))
        return path

    def make_durable(self, names: Iterable[str], *, new_folders: bool) -> None:
        """Wait until files that Spark or deltalake wrote are on the disk, and so are their names; these make files and
        folders by rules of their own, and get the permissions of a warehouse here."""
        paths = [self.path(name) for name in names]
        allowed = self._folder_mode()
        for path in paths:
            with explained(path), open(path, "rb") as file:
                _restrict(file.fileno(), allowed)
                os.fsync(file.fileno())
        folders = {path.parent for path in paths}
        if new_folders:
            folders |= {above for folder in folders for above in folder.parents if above.is_relative_to(self.root)}
        for folder in folders:
            with explained(folder):
                _sync_folder(folder, allowed if new_folders and folder != self.root else ANYBODYS)

    def rename(self, name: str, target: str) -> None:
        """Give a file that is not durable yet another name in its folder."""
        path = self.path(name)
        with explained(path):
            os.rename(path, self.path(target))

    def move(self, name: str, target: str) -> None:
        """Put a file in another place, where there is none yet."""
        folder, _, file = name.rpartition("/")
        place, _, called = target.rpartition("/")
        self._move(folder, place, {file: called})

    def move_all(self, names: Iterable[str], folder: str, target: str) -> None:
        """The same for files of a folder, which keep their names."""
        self._move(folder, target, {name: name for name in names})

    def _move(self, folder: str, target: str, names: Mapping[str, str]) -> None:
        place = self.path(target)
        self.about_to_write([f"{target}/{called}" for called in names.values()])
        with explained(place):
            self._make_folder(place)
            for name, called in names.items():
                os.rename(self.path(f"{folder}/{name}"), self.path(f"{target}/{called}"))
            _sync_folder(place)

    def delete(self, name: str) -> None:
        """Delete a file; one that is not there is fine."""
        path = self.path(name)
        with explained(path):
            path.unlink(missing_ok=True)

    def delete_durably(self, name: str) -> None:
        """The same, and the disk knows."""
        if self.exists(name):
            self.delete(name)
            with suppress(OSError):  # a full disk that cannot say so has deleted it all the same
                _sync_folder(self.path(name).parent)

    def remove_empty_folders(self, folder: str, besides: Iterable[str] = ()) -> None:
        """Remove a folder and those below it if there is no file in them; not those that have one of these names in
        their path."""
        for place, _, _ in os.walk(self.path(folder), topdown=False):
            with explained(Path(place)):
                if not any(name in Path(place).parts for name in besides) and not os.listdir(place):
                    os.rmdir(place)

    def remove_if_empty(self, folders: Iterable[str]) -> None:
        """Remove those of some folders, and of the ones above them, that hold nothing any more."""
        for folder in sorted(folders, reverse=True):
            place = self.path(folder)
            with explained(place):
                while place != self.root and _is_gone_or_removed(place):
                    place = place.parent

    # --- permissions ---

    def _folder_mode(self) -> int:
        if self._permissions is not None:
            return self._permissions
        try:
            return stat.S_IMODE(os.stat(self.root / _LIKE).st_mode) & ANYBODYS
        except FileNotFoundError:
            return PRIVATE

    def _create(self, path: str, flags: int) -> int:
        return os.open(path, flags, self._folder_mode() & ~0o111)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder and those above it; what was made is on the disk."""
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(self._folder_mode() if folder.is_relative_to(self.root) else ANYBODYS, exist_ok=True)
        _sync_folder(folder.parent)

    # --- one writer ---

    @contextmanager
    def locked(self, name: str, holder: dict[str, object]) -> Iterator[None]:
        """Hold a lock that ends with this process, however it ends; WriterPresent if another holds it."""
        path = self.path(name)
        with explained(path):
            self._make_folder(path.parent)
            # Not "w": whoever fails to get the lock must not wipe the holder's name.
            with open(path, "ab+", buffering=0, opener=self._create) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    file.seek(0)
                    raise _writer_present(self.root, file.read()) from None
                with suppress(OSError):  # on a full disk the lock still holds, without a name
                    file.truncate(0)
                    file.write(json.dumps(holder).encode())
                yield


def _is_gone_or_removed(folder: Path) -> bool:
    """Remove a folder if it is empty, without listing it; whether it is not there now."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        return False
    return True


def _writer_present(root: Path, holder: bytes) -> WriterPresent:
    try:
        told = json.loads(holder)
        who = f"process {told['pid']} on {told['host']}, since {told['since']}"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return WriterPresent(
        f"{root} is being written by {who}",
        f"stop it first; {_ONLY_READS} never waits",
    )


def open_store(path: str | os.PathLike[str]) -> LocalStore:
    """The store of a path or a file: URI."""
    text = os.fspath(path)
    parts = urlsplit(text)
    if len(parts.scheme) > 1:
        if parts.scheme != "file":
            raise UsageError(
                f"{parts.scheme}:// is not supported: {text}",
                "use a folder that the driver and all executors see under one path: a disk, NFS, a mounted bucket",
            )
        text = unquote(parts.path)
    root = Path(text).expanduser().absolute()
    if told := _unusable(str(root)):
        raise UsageError(f"the path of a warehouse may not contain {told}: {root}", "choose another folder")
    if os.path.lexists(root) and not root.is_dir():
        raise NotAWarehouse(f"{root} is not a folder, and a warehouse is one", "name a folder")
    return LocalStore(root)


_PATTERN = re.compile(r"[\[\]{}*?]")


def _unusable(path: str) -> str | None:
    """What it is in a path that Spark or deltalake would take for something else."""
    if "%" in path:
        return "'%'"
    if "\\" in path or any(ord(character) < ord(" ") for character in path):
        return "a backslash or a control character"
    return "':' beside one of '[]{}*?'" if ":" in path and _PATTERN.search(path) else None


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a file into what it means for the warehouse."""
    try:
        yield
    except FileExistsError:
        raise
    except FileNotFoundError as error:
        raise missing_file(error.filename or path) from error
    except OSError as error:
        raise storage_failure(error, path) from error


def missing_file(path: object) -> DamagedWarehouse:
    """The error for a file that a commit names and that is not there."""
    return DamagedWarehouse(
        f"{path} is missing",
        "something other than viewkeeper deleted it: put it back from a backup, or reload the view that it belongs to",
    )


def damaged_file(path: object, why: object) -> DamagedWarehouse:
    """The error for a data file that is not what was written."""
    return DamagedWarehouse(
        f"{path} is damaged: {why}", "put it back from a backup, or reload the view that it belongs to"
    )


def _files_below(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    """The files in a folder, then those in the folders of it."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    if links := [entry for entry in entries if entry.is_symlink()]:
        raise _link(links[0].path)
    folders = {entry.path: entry.is_dir(follow_symlinks=False) for entry in entries}
    yield from (entry for entry in entries if not folders[entry.path])
    for place in (place for place, is_folder in folders.items() if is_folder):
        yield from _files_below(place)


def _link(place: str) -> DamagedWarehouse:
    """The error for a symbolic link: it may lead to the files of another warehouse, or of anybody."""
    return DamagedWarehouse(
        f"{place} is a symbolic link, and viewkeeper follows none inside a warehouse",
        "put what it leads to in its place; only the folder of the warehouse itself may be a link",
    )


def _leads_out(root: Path, name: str) -> DamagedWarehouse:
    return DamagedWarehouse(
        f"{root} names a file outside of itself: {name}",
        "viewkeeper did not write that: do not use this warehouse, or put it back from a backup",
    )


def storage_failure(error: OSError, path: object) -> StorageFailure:
    """The error for a disk that is full, a folder that may not be written, and the like."""
    hints = {
        errno.ENOSPC: "the disk is full: free some space and try again; \"viewkeeper vacuum --retention '0 s' --grace "
        "'0 s'\" deletes now what only earlier states need, once there is room for its own small record; what was "
        "committed before is as it was",
        errno.EDQUOT: "the quota is used up: free some space and try again; what was committed before is as it was",
        errno.EFBIG: "this process may not write files of that size (see 'ulimit -f'); what was committed before is as "
        "it was",
        errno.EROFS: f"the file system is read-only; {_ONLY_READS} works",
        errno.EACCES: f"grant this user access to the folder; {_ONLY_READS} works where it may be read",
    }
    return StorageFailure(
        f"{path}: {error.strerror or error}", hints.get(error.errno or 0, "what was committed before is as it was")
    )


def _sync_folder(folder: Path, allowed: int = ANYBODYS) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _restrict(descriptor, allowed)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _restrict(descriptor: int, allowed: int) -> None:
    """Take away the permissions that are not allowed. What an executor made as another user stays as that made it."""
    now = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if now & ANYBODYS & ~allowed:
        with suppress(PermissionError):
            os.fchmod(descriptor, now & ~(ANYBODYS & ~allowed))
