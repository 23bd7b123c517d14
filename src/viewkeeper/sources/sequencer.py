"""Restores the order of a source's messages from their sequence numbers.

Section 3.3 of the Strobe paper: every message of a source carries the next number, so a missing one is noticed and
waited for. That matters where one site reports a global transaction whole (section 5.4): the part of another source
then comes by that site's channel, carrying the number that it has at its own source, and whatever that source sent
later, answers included, must not be seen before it.
"""

from collections.abc import Iterator
from typing import Any


class Sequencer:
    """Holds back what came too early; releases each source's messages in their order, 1, 2, 3, ..."""

    def __init__(self) -> None:
        self._released: dict[str, int] = {}
        self._early: dict[tuple[str, int], Any] = {}

    def receive(self, source: str, number: int, message: Any) -> Iterator[Any]:
        """The messages of that source that can be processed now."""
        self._early[source, number] = message
        while (source, expected := self._released.get(source, 0) + 1) in self._early:
            self._released[source] = expected
            yield self._early.pop((source, expected))

    @property
    def waiting(self) -> int:
        """How many messages wait for one that is missing."""
        return len(self._early)
