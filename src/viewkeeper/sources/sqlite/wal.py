"""Where transactions end, read from the -wal file.

    commit frames that come with a page of `head`  =  the commits that changed something captured, and their last seq

A commit writes every page that it changed as a frame, and marks the last one. `head` is one page, so the frames of a
commit tell its last seq. A frame counts only if it has the salts of the file's header, and if all of it lies before a
state that SQLite itself has shown us: nothing is read after the commit that made `head` what that state says. When the
file is written from its beginning again (a restart), the rest of the former generation still stands after the new
frames; it is read first, if nothing of it can be overwritten yet.

A file that was not restarted since it was read to a place has every commit between that place and the state, whole:
a restart writes the header, with new salts, before it overwrites a frame. After a restart that commit may be in either
generation, or in none, and frames count only as far as the chain of their checksums holds.

Anything unexpected ends in "not known", which makes one merged transaction out of several. It never splits one.
"""

import os
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

HEADER = 32
FRAME_HEADER = 24
_CHUNK = 1 << 20
_LITTLE, _BIG = 0x377F0682, 0x377F0683
_VERSION = 3007000
_LEAF = 0x0D
_SCHEMA_VERSION = 40
"""Where page 1 holds it."""


@dataclass(frozen=True)
class Generation:
    """One filling of the file, from a restart to the next."""

    page_size: int
    salts: tuple[int, int]
    big_endian: bool
    seed: tuple[int, int]

    @property
    def frame_size(self) -> int:
        return FRAME_HEADER + self.page_size

    def follows(self, other: "Generation") -> bool:
        return self.salts[0] == (other.salts[0] + 1) % (1 << 32) and self.page_size == other.page_size

    def offset(self, frame: int) -> int:
        return HEADER + frame * self.frame_size


@dataclass(frozen=True)
class Place:
    """Behind so many frames of a generation, the last of which has this checksum.

    `schema` is the version of the schema there, if known: with another one, `head` may be on another page.
    """

    generation: Generation
    frame: int
    checksum: tuple[int, int]
    schema: int | None

    @classmethod
    def start(cls, generation: Generation, schema: int | None) -> "Place":
        return cls(generation, 0, generation.seed, schema)


Bound = tuple[int, bool]
"""The last seq of a commit, and whether the commit with changes directly before it is known."""


class WalCommits:
    """The commits in a -wal file, in order. `mark` is what stands in the row of `head`."""

    def __init__(self, path: Path, mark: bytes) -> None:
        self._path = path
        self._mark = mark
        self._place: Place | None = None
        self._empty = False
        self._schema: int | None = None

    @property
    def frames_read(self) -> int:
        """How far the file was read."""
        return 0 if self._place is None else self._place.frame

    def began_anew(self) -> bool:
        """Whether the file was restarted since it was read."""
        return self._place is not None and self._generation() not in (None, self._place.generation)

    def _generation(self) -> Generation | None:
        try:
            with open(self._path, "rb", buffering=0) as file:
                return read_header(file.fileno())
        except OSError:
            return None

    def settle(self, schema: int) -> None:
        """Nothing captured is behind what was read: whatever the file holds now, reading goes on from its start.

        SQLite shows a state of which this is so, with this version of the schema.
        """
        generation, self._schema = self._generation(), schema
        self._empty = generation is None
        if generation is None:
            self._place = None
        elif self._place is None or self._place.generation != generation:
            self._place = Place.start(generation, schema)

    def between(self, last: int, head: int, root: int, *, held: bool) -> list[Bound]:
        """The ends of the transactions after `last` up to `head`, and of each whether it is one transaction for sure.

        SQLite has shown a state with this `head`. `held`: states have been held without a gap since the call before, so
        the file was restarted at most once, and only if all of it had been read.
        """
        try:
            with open(self._path, "rb", buffering=0) as file:
                # Again, because a restart may have come between.
                found = self._follow(file.fileno(), last, head, root, held=held) or self._follow(
                    file.fileno(), last, head, root, held=held
                )
                if found is None:
                    found = self._afresh(file.fileno(), last, head, root)
        except OSError:
            found = None
        if found is None:
            self._place, self._empty = None, False
            return [(head, False)]
        return found

    def _follow(self, file: int, last: int, head: int, root: int, *, held: bool) -> list[Bound] | None:
        """Go on from where the file was read to."""
        generation, place = read_header(file), self._place
        if place is None and generation is not None and self._empty and held:
            place = Place.start(generation, self._schema)
        if generation is None or place is None:
            return None
        if place.generation == generation:
            bounds, end = self._scan(file, place, root, head, is_there=True)
            return self._accepted(file, generation, bounds, end, last, head)
        rest: list[Bound] = []
        known, end = held, place
        if not held and generation.follows(place.generation):
            rest, end, known = self._rest(file, place, generation, root, head)
            if rest and rest[-1][0] == head:  # there may be more after it
                return self._accepted(file, generation, rest, end, last, head)
        bounds, end = self._scan(file, Place.start(generation, end.schema), root, head)
        return self._accepted(file, generation, [*rest, *_after_a_gap(bounds, known)], end, last, head)

    def _afresh(self, file: int, last: int, head: int, root: int) -> list[Bound] | None:
        """Read the whole file: after a surprise, or at the beginning."""
        generation = read_header(file)
        if generation is None:
            return None
        bounds, end = self._scan(file, Place.start(generation, None), root, head)
        return self._accepted(file, generation, _after_a_gap(bounds, False), end, last, head)

    def _accepted(
        self,
        file: int,
        generation: Generation,
        found: Sequence[Bound],
        end: Place,
        last: int,
        head: int,
    ) -> list[Bound] | None:
        """What was found, if it leads to `head` and the file was not restarted meanwhile."""
        rising = all(one < other for (one, _), (other, _) in pairwise(found))
        if not found or found[-1][0] != head or not rising or read_header(file) != generation:
            return None
        self._place, self._empty = end, False
        return [(bound, known) for bound, known in found if bound > last]

    def _rest(
        self, file: int, place: Place, successor: Generation, root: int, head: int
    ) -> tuple[list[Bound], Place, bool]:
        """The commits of a former generation behind a place, the place after them, and whether that was all."""
        bounds, end = self._scan(file, place, root, head)
        size = os.fstat(file).st_size
        untouched = size >= place.generation.offset(place.frame)
        whole_frames = (size - HEADER) % place.generation.frame_size == 0
        header = os.pread(file, FRAME_HEADER, place.generation.offset(place.frame))
        if len(header) == FRAME_HEADER and struct.unpack_from(">2I", header, 8) == successor.salts:
            untouched = False
        at_end = os.pread(file, FRAME_HEADER, end.generation.offset(end.frame)) == b""
        return bounds, end, untouched and (whole_frames or not at_end)

    def _scan(
        self, file: int, place: Place, root: int, head: int, *, is_there: bool = False
    ) -> tuple[list[Bound], Place]:
        """The commits after a place, as far as frames are valid but not after the one that ends with `head`; and the
        place after the last of them. `is_there`: that one is among them for sure, so all frames before it are valid.

        When the version of the schema changes, `head` may have been on another page before: then what comes next may be
        more than one transaction.
        """
        generation, done, seed, frame = place.generation, place, place.checksum, place.frame
        bounds: list[Bound] = []
        seq: int | None = None
        schema, known = place.schema, True
        at_once = max(1, _CHUNK // generation.frame_size)
        while True:
            buffer = os.pread(file, at_once * generation.frame_size, generation.offset(frame))
            frames = _frames(buffer, generation)
            commits, ended = [], False
            for number, (page, size, _) in enumerate(frames, start=1):
                start = number * generation.frame_size - generation.page_size
                if page == 1:
                    before, (schema,) = schema, struct.unpack_from(">I", buffer, start + _SCHEMA_VERSION)
                    known = known and schema == before
                if page == root:
                    seq = self._seq_in(buffer, start, seq)
                if size:
                    if seq is not None:
                        commits.append((number, seq, known, schema))
                        ended, known = seq >= head, True
                    seq = None
                if ended:
                    del frames[number:]
            checksums = [checksum for _, _, checksum in frames]
            valid = len(frames) if is_there else _valid(buffer, generation, seed, checksums)
            for number, last, follows, version in commits:
                if number <= valid and last <= head:
                    # One that writes the page and leaves its number as it is has changed nothing captured.
                    if not bounds or last != bounds[-1][0]:
                        bounds.append((last, follows))
                    done = Place(generation, frame + number, frames[number - 1][2], version)
            if ended or valid < at_once:
                return bounds, done
            frame, seed = frame + valid, frames[-1][2]

    def _seq_in(self, buffer: bytes, start: int, otherwise: int | None) -> int | None:
        """The number in the row of `head`, if this is its page."""
        try:
            page = memoryview(buffer)[start:]
            (cells,) = struct.unpack_from(">H", page, 3)
            if page[0] != _LEAF or cells != 1:
                return otherwise
            (at,) = struct.unpack_from(">H", page, 8)
            _, at = _varint(page, at)  # the size of the record
            _, at = _varint(page, at)  # the rowid
            length, body = page[at], at + page[at]
            kinds = bytes(page[at + 1 : at + length])
            if kinds[:2] != bytes((0, 12 + 2 * len(self._mark))) or len(kinds) != 3 or kinds[2] not in _WIDTHS:
                return otherwise
            after = body + len(self._mark)
            if bytes(page[body:after]) != self._mark:
                return otherwise
            return int.from_bytes(page[after : after + _WIDTHS[kinds[2]]], "big", signed=True)
        except (IndexError, struct.error):
            return otherwise


def _after_a_gap(bounds: Sequence[Bound], known: bool) -> list[Bound]:
    """The same, if it is known or not that nothing came between them and what was read before."""
    return [(bound, follows and (known or number > 0)) for number, (bound, follows) in enumerate(bounds)]


_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""The bytes of an integer in a record, by its kind."""


def _varint(page: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = page[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | page[at], at + 1


def read_header(file: int) -> Generation | None:
    """The generation that the file is in; None if it has no valid header."""
    header = os.pread(file, HEADER, 0)
    if len(header) < HEADER:
        return None
    magic, version, page_size, _, *rest = struct.unpack(">8I", header)
    if magic not in (_LITTLE, _BIG) or version != _VERSION or page_size not in {1 << bits for bits in range(9, 17)}:
        return None
    big_endian = magic == _BIG
    first = second = 0
    words = struct.unpack_from(f"{'>' if big_endian else '<'}6I", header)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = first + one + second & 0xFFFFFFFF
        second = second + other + first & 0xFFFFFFFF
    if (first, second) != (rest[2], rest[3]):
        return None
    return Generation(page_size, (rest[0], rest[1]), big_endian, (first, second))


Frame = tuple[int, int, tuple[int, int]]
"""The page, the size of the database (0: this is not the end of a commit) and the checksum."""


def _frames(buffer: bytes, generation: Generation) -> list[Frame]:
    """The frames at the beginning of a buffer that have the salts of a generation."""
    frames = []
    for at in range(0, len(buffer) - generation.frame_size + 1, generation.frame_size):
        page, size, salt, other_salt, first, second = struct.unpack_from(">6I", buffer, at)
        if (salt, other_salt) != generation.salts:
            break
        frames.append((page, size, (first, second)))
    return frames


def _valid(buffer: bytes, generation: Generation, seed: tuple[int, int], checksums: Sequence[tuple[int, int]]) -> int:
    """How many frames at the beginning have the checksum that their content and the frame before them make.

        s0 += x0 + s1;  s1 += x1 + s0       for each two words of 32 bits, modulo 2^32

    The sums of all frames are computed side by side, each in 64 bits of one large integer: that is many times faster
    than one after the other.
    """
    count = len(checksums)
    if count == 0:
        return 0
    content: bytes = buffer[: count * generation.frame_size]
    if generation.big_endian:
        words = array("I", content)
        words.byteswap()
        content = words.tobytes()
    pairs = array("Q", content)
    stride = generation.frame_size // 8
    low = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * count, "little")
    before = [seed, *checksums[:-1]]
    first = _side_by_side([one for one, _ in before])
    second = _side_by_side([other for _, other in before])
    # The header of a frame counts with its first 8 bytes; 16 more hold the salts and the checksum.
    for place in (0, *range(FRAME_HEADER // 8, stride)):
        pair = int.from_bytes(pairs[place::stride], "little")
        first = first + (pair & low) + second & low
        second = second + (pair >> 32 & low) + first & low
    for number, (one, other) in enumerate(checksums):
        if (first >> 64 * number & 0xFFFFFFFF, second >> 64 * number & 0xFFFFFFFF) != (one, other):
            return number
    return count


def _side_by_side(numbers: Sequence[int]) -> int:
    return int.from_bytes(struct.pack(f"<{len(numbers)}Q", *numbers), "little")
