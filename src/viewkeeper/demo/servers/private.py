"""What private servers have in common: programs that must be there, a folder of their own, an owner other than root."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.errors import SourceUnavailable, SourceUnfit

PATIENCE = 120.0
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


def did_not_start(what: str, said: str) -> SourceUnavailable:
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
    return SourceUnavailable(f"the private {what} did not start: {last}", "run the demo without --postgres")
