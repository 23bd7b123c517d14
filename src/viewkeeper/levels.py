"""The levels of consistency between a view and its sources.

    none < convergent < weak < strong < complete

Each includes those before it, as Zhuge et al. (1996), section 4.2, define them:

    convergent    the last state is right
    weak          each state is right for some state of each source
    strong        the states follow one serial schedule of the sources, in order
    complete      and none of the source states along it is skipped

An algorithm promises a level and the checker finds the one that a run reached: both use this type.
"""

from enum import IntEnum


class Level(IntEnum):
    """How far a view can be trusted; levels compare by strength, and print as their lower-case names."""

    NONE = 0
    CONVERGENT = 1
    WEAK = 2
    STRONG = 3
    COMPLETE = 4

    def __str__(self) -> str:
        return self.name.lower()
