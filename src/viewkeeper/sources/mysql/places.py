"""Places in the binary log: the number of a file, and an offset in it.

    binlog.000012, 4711   ⇔   0000000012:000000004711

Headers of events hold 32 bits of the offset. Only a huge last transaction takes a file past 4 GiB; there the offset
seems to fall, and is carried on.
"""

from dataclasses import dataclass, field

from viewkeeper.errors import PositionLost
from viewkeeper.messages import Position

CARRY = 1 << 32


def place(number: int, offset: int) -> Position:
    return f"{number:010d}:{offset:012d}"


def place_in(file: str, offset: int) -> Position:
    return place(number_of(file), offset)


def number_of(file: str) -> int:
    return int(file.rpartition(".")[2])


def split(position: Position) -> tuple[int, int]:
    """The number of the file, and the offset."""
    number, _, offset = position.partition(":")
    if not (number.isdecimal() and offset.isdecimal()):
        raise PositionLost(f"{position!r} is no place in a binary log", "reload the views of this source")
    return int(number), int(offset)


@dataclass
class Reached:
    """How far a stream has come, from the headers of its events."""

    number: int = 0
    offset: int = field(default=0)
    carried: int = 0

    def file(self, name: str) -> None:
        number = number_of(name)
        if number != self.number:
            self.number, self.offset, self.carried = number, 0, 0

    def at(self, low: int) -> Position:
        """The place of which a header holds the low bits."""
        if low + self.carried < self.offset:
            self.carried += CARRY
        self.offset = low + self.carried
        return place(self.number, self.offset)
