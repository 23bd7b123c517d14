"""Wakes a thread that waits for a socket."""

import socket
from contextlib import suppress


class Bell:
    """`ring` from any thread makes `heard` readable for the one that waits."""

    def __init__(self) -> None:
        self.heard, self._rope = socket.socketpair()
        self.heard.setblocking(False)
        self._rope.setblocking(False)

    def ring(self) -> None:
        # A full buffer is a bell that rings already; a closed one has nobody to wake.
        with suppress(OSError):
            self._rope.send(b"!")

    def silence(self) -> None:
        with suppress(BlockingIOError):
            while self.heard.recv(4096):
                pass

    @property
    def closed(self) -> bool:
        return self.heard.fileno() < 0

    def close(self) -> None:
        self.heard.close()
        self._rope.close()
