"""How many rows of a relation a shipped key meets, learned from the answers; it decides whom a sweep asks first.

    expected rows of a hop  =  rows received ÷ keys shipped         so far; before that, 1 where the key is joined on

A sweep goes on with what an answer brought, so asking where little comes back ships less at every later hop. Old
answers fade, for the sources change.
"""

from viewkeeper.algebra.joins import Hop
from viewkeeper.algebra.zset import On

UNKNOWN = 10.0
"""what a key is taken to meet when nothing is known"""
MEMORY = 10_000
"""keys after which what was learned counts half"""


class FanOut:
    """The statistics of one view."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, On], tuple[float, float]] = {}

    def expected(self, hop: Hop) -> float:
        """The rows that one shipped key is expected to meet; infinite for a cross product, which ships everything."""
        if not hop.on:
            return float("inf")
        keys, rows = self._seen.get((hop.operand.alias, hop.on), (0.0, 0.0))
        if keys:
            return rows / keys
        joined = {right for _, right in hop.on}
        return 1.0 if hop.operand.key is not None and joined.issuperset(hop.operand.key) else UNKNOWN

    def learn(self, hop: Hop, keys: int, rows: int) -> None:
        """So many keys were shipped, and so many rows came back."""
        if hop.on and keys:
            place = (hop.operand.alias, hop.on)
            before = self._seen.get(place, (0.0, 0.0))
            fading = 0.5 if before[0] > MEMORY else 1.0
            self._seen[place] = (before[0] * fading + keys, before[1] * fading + rows)
