"""Keeps a server for as long as the one who wants it lives: python -m viewkeeper.demo.guard

    in     one line, what to start, as JSON (`Server`); the end of the input ends the server
    out    the last words of a server that ended by itself

The folder of the server is removed when it has ended. All that also happens if the one who wants it is killed.
"""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Server:
    """What is to be started, and how it is ended."""

    command: Sequence[str]
    folder: str
    """its own, where it is started; everything of it is in there"""
    log: str
    user: str | None
    environment: Mapping[str, str]
    signal: int

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> "Server":
        return cls(**json.loads(text))


def main() -> None:
    server = Server.of(sys.stdin.readline())
    with Path(server.log).open("ab") as log:
        process = subprocess.Popen(
            server.command,
            user=server.user,
            cwd=server.folder,
            env=server.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    asked = threading.Event()

    def end_it() -> None:
        sys.stdin.read()
        asked.set()
        process.send_signal(server.signal)

    threading.Thread(target=end_it, daemon=True).start()
    process.wait()
    if not asked.is_set():
        print(Path(server.log).read_text(errors="replace")[-2000:], flush=True)
    shutil.rmtree(server.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
