"""What private servers have in common: programs that must be there, a folder of their own, an owner other than root."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from viewkeeper.clock import monotonic
from viewkeeper.demo.guard import Server
from viewkeeper.errors import SourceUnavailable, SourceUnfit

PATIENCE = 120.0
GLANCE = 0.05
_MORE_PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin")


def program(what: str, package: str, names: Sequence[str], places: Sequence[Path] = ()) -> str:
    """The path of the first of these programs that is there; SourceUnfit, with what to install, if none is."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, places), *_MORE_PLACES])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise SourceUnfit(
        f"the demo would start a private {what}, and there is no {names[0]!r} on this machine",
        f"install {what} (on Debian and Ubuntu: apt-get install {package}), or run the demo without --postgres",
    )


def owner(*names: str) -> str | None:
    """Whom to run a server as: itself, or one of these users if that is root, which no server wants to be run by."""
    if os.geteuid() != 0:
        return None
    for name in names:
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise SourceUnfit(
        f"a server does not run as root, and there is no user {' or '.join(names)} to run it as",
        "run the demo as another user, or without --postgres",
    )


@contextmanager
def server_folder(name: str, user: str | None) -> Iterator[Path]:
    """A folder that belongs to a server, and goes with it. In /tmp, for the path of a socket must be short."""
    folder = Path(tempfile.mkdtemp(prefix=f"viewkeeper-{name}-", dir="/tmp"))
    try:
        # Whoever maintains the views passes through it to the socket.
        folder.chmod(0o755)
        if user is not None:
            shutil.chown(folder, user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(what: str, command: Sequence[str], folder: Path, user: str | None) -> None:
    """Run a program of a server to its end; SourceUnavailable, with its last words, if it fails."""
    done = subprocess.run(
        command,
        user=user,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=PATIENCE,
        env=environment(folder),
    )
    if done.returncode:
        raise did_not_start(what, done.stdout)


def environment(folder: Path) -> dict[str, str]:
    """That of a server: what it makes for a while is in its folder too, and its words are plain."""
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "TZ": "UTC", "TMPDIR": str(folder)}


class Guarded:
    """A server that is up as long as this process is, or until `end`."""

    def __init__(self, what: str, command: Sequence[str], folder: Path, user: str | None, end: signal.Signals) -> None:
        self._what = what
        log = folder / "server.log"
        # In a session of its own: Ctrl-C is for the one who shows the demo.
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "viewkeeper.demo.guard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._guard.stdin is not None
        order = Server(command, str(folder), str(log), user, environment(folder), end)
        self._guard.stdin.write(f"{order.as_json()}\n")
        self._guard.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._guard.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.communicate()

    def wait_for(self, answers: Callable[[], bool]) -> None:
        """Until it answers; SourceUnavailable if it ends instead, or takes too long."""
        deadline = monotonic() + PATIENCE
        while not answers():
            if self._guard.poll() is not None:
                said, _ = self._guard.communicate()
                raise did_not_start(self._what, said)
            if monotonic() > deadline:
                raise did_not_start(self._what, f"it has not answered for {PATIENCE:.0f} s")
            threading.Event().wait(GLANCE)


def listens(path: Path) -> bool:
    """Whether somebody is behind a socket. Asked first: a driver leaves a socket open if nobody is."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def did_not_start(what: str, said: str) -> SourceUnavailable:
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
    return SourceUnavailable(f"the private {what} did not start: {last}", "run the demo without --postgres")
