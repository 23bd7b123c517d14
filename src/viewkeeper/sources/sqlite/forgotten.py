"""What the warehouse remembers of a database: up to where its log was forgotten.

    noted  <=  floor of the log                  always, in the database whose log it was
    noted  >   floor of the log                  another one is in its place, most likely put back from a backup

Behind that its log has other changes under the same numbers. A floor is noted when it is on disk: a power failure may
undo a transaction that did not wait for the disk, and must not look like a backup.
"""

from pathlib import Path

from viewkeeper.errors import PositionLost
from viewkeeper.messages import position
from viewkeeper.sources.lake import durable


class Forgotten:
    """The note, a file in a folder of the warehouse; without a folder nothing is noted."""

    def __init__(self, workspace: Path | None) -> None:
        self._path = None if workspace is None else workspace / "forgotten.json"
        self._noted: int | None = None

    @property
    def noted(self) -> int:
        if self._noted is None:
            told = durable.read_json(self._path) if self._path is not None else None
            self._noted = int(told["floor"]) if told else 0
        return self._noted

    def note(self, floor: int) -> None:
        """The log was forgotten up to here."""
        if floor > self.noted:
            self.begin_anew(floor)

    def begin_anew(self, floor: int) -> None:
        """The log of another database."""
        if self._path is not None:
            durable.replace(self._path, {"floor": floor})
        self._noted = floor

    def check(self, source: str, floor: int) -> None:
        """PositionLost unless it is the database whose log was forgotten."""
        if self.noted > floor:
            raise PositionLost(
                f"the database of {source} was put back from a backup: what it had sent up to {position(self.noted)} "
                "was stored, and now it does not know of that",
                "reload the views over it and audit them; if capture was not installed by viewkeeper, install it again",
            )
