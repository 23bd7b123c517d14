"""Relations of the Wisconsin benchmark that join each other, and changes of them: deterministic, made in Arrow.

    R, T    10,000 rows x scale, S 24,000 x scale; 20 % of R have no partner in S
    a       the join attribute, beside the sixteen columns of the benchmark

    key-key            R ⋈ T      a is a key of both            10,000 x scale rows: each row has one partner
    key-foreign key    R ⋈ S      a is a key of R alone         24,000: each of 8,000 rows of R has three partners
    non key-non key    R ⋈ S      a is a key of neither         48,000: 4,000 values, two rows of R and six of S each

These are the sizes of the paper's section 5.1. Its 20 % of R and T without a partner are without one in S: in the
key-key join, which is of R and T, every row has its partner.

A row is made of its number `unique2`, which is its key and never given again, of `unique1`, and of `a`. Rows lie in
the order of their numbers, and `a` has nothing to do with that order: changes that are near each other in a relation
are scattered over the join.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, cycle, islice
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

SEED = 1997
KEY = "unique2"
JOINED = "a"
PARTS = 20
"""How many files a relation is loaded as."""

KEY_KEY, KEY_FOREIGN_KEY, NON_KEY = "key-key", "key-foreign key", "non key-non key"
KINDS = (KEY_KEY, KEY_FOREIGN_KEY, NON_KEY)
WITHOUT_PARTNER = 0.2

# An updated row gets a `unique1` far from that of any other, within four bytes.
_STEP, _MOST = 1_000_000_007, 2_000_000_011
_LETTERS = pa.array([chr(ord("A") + number) for number in range(26)])
_STRING_4 = pa.array([letter * 4 + "x" * 48 for letter in "AHOV"])


@dataclass
class Relation:
    """What is known of one relation: its numbers, file by file. Everything else follows from them."""

    name: str
    parts: dict[int, pa.Table] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(part.num_rows for part in self.parts.values())

    def joined(self) -> list[int]:
        """The different values of the join attribute, in some order."""
        return pc.unique(pa.chunked_array([part[JOINED].combine_chunks() for part in self.parts.values()])).to_pylist()


@dataclass(frozen=True)
class Rewriting:
    """What one transaction does to the files of a relation."""

    gone: Sequence[int]
    come: Sequence[int]
    changes: int


class JoinedRelations:
    """Two relations and what is done to them."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind, self.size = kind, size
        self._random = Random(SEED)
        self.left, self.right = Relation("r"), Relation("t" if kind == KEY_KEY else "s")
        left, right = _first_values(kind, size)
        self._values = count(2 * size)
        self._numbers = {relation.name: count() for relation in self.both}
        self._parts = {relation.name: count() for relation in self.both}
        for relation, values in ((self.left, left), (self.right, right)):
            self._random.shuffle(values)
            first = list(range(len(values)))
            self._random.shuffle(first)
            self._numbers[relation.name] = count(len(values))
            for part in range(PARTS):
                of_part = range(part * len(values) // PARTS, (part + 1) * len(values) // PARTS)
                rows = _rows(of_part, first[of_part.start : of_part.stop], values[of_part.start : of_part.stop])
                relation.parts[next(self._parts[relation.name])] = rows

    @property
    def both(self) -> tuple[Relation, Relation]:
        return self.left, self.right

    # --- changes: one transaction of each relation ---

    def insert(self, share: float) -> dict[str, Rewriting]:
        """So many new rows of each relation."""
        values = self._new_values([round(share * relation.rows) for relation in self.both])
        return {
            relation.name: Rewriting((), [self._appended(relation, of_relation)], len(of_relation))
            for relation, of_relation in zip(self.both, values, strict=True)
        }

    def delete(self, share: float) -> dict[str, Rewriting]:
        """The oldest rows of each relation: whole files, so that the feed has little to do."""
        done = {}
        for relation in self.both:
            wanted, gone, rows = share * relation.rows, [], 0
            while rows + next(iter(relation.parts.values())).num_rows <= 1.05 * wanted:
                part = next(iter(relation.parts))
                rows += relation.parts.pop(part).num_rows
                gone.append(part)
            done[relation.name] = Rewriting(gone, (), rows)
        return done

    def mix(self, share: float) -> dict[str, Rewriting]:
        """Half insertions, a quarter deletions, a quarter updates; of these every second changes the join attribute."""
        changed = [round(share * relation.rows) for relation in self.both]
        values = self._new_values([total // 2 + total // 8 for total in changed])
        done = {}
        for relation, total, new in zip(self.both, changed, values, strict=True):
            self._random.shuffle(new)
            place, part = next(iter(relation.parts.items()))
            if part.num_rows < total // 2:
                raise ValueError(f"a file of {part.num_rows} rows is too small for {total} changes")
            kept = self._without(part, total // 4)
            updated = self._updated(kept, total // 4, new[total // 2 :])
            del relation.parts[place]
            rewritten = next(self._parts[relation.name])
            relation.parts[rewritten] = updated
            appended = self._appended(relation, new[: total // 2])
            done[relation.name] = Rewriting([place], [rewritten, appended], total // 2 + 2 * (total // 4))
        return done

    def _appended(self, relation: Relation, values: Sequence[int]) -> int:
        numbers = list(islice(self._numbers[relation.name], len(values)))
        part = next(self._parts[relation.name])
        relation.parts[part] = _rows(numbers, self._random.sample(numbers, len(numbers)), values)
        return part

    def _without(self, part: pa.Table, rows: int) -> pa.Table:
        gone = set(self._random.sample(range(part.num_rows), rows))
        return part.take([place for place in range(part.num_rows) if place not in gone])

    def _updated(self, part: pa.Table, rows: int, values: Sequence[int]) -> pa.Table:
        """Rows with the same key and other values; some of them with a new value of the join attribute."""
        first, joined = part["unique1"].to_pylist(), part[JOINED].to_pylist()
        new = iter(values)
        for number, place in enumerate(self._random.sample(range(part.num_rows), rows)):
            first[place] = (first[place] + _STEP) % _MOST
            if number % 2:
                joined[place] = next(new)
        return _rows(part[KEY].to_pylist(), first, joined)

    # --- the join attribute of new rows ---

    def _new_values(self, sizes: Sequence[int]) -> tuple[list[int], list[int]]:
        """New rows join old ones, those without a partner among them, and each other; some join nothing."""
        return {KEY_KEY: self._for_keys, KEY_FOREIGN_KEY: self._for_foreign_key, NON_KEY: self._for_no_key}[self.kind](
            *sizes
        )

    def _for_keys(self, lefts: int, rights: int) -> tuple[list[int], list[int]]:
        """Half of those that join find an old row without a partner, as far as there are any; the rest each other."""
        there = [set(relation.joined()) for relation in self.both]
        single = sorted(there[1] - there[0]), sorted(there[0] - there[1])
        joining = [round((1 - WITHOUT_PARTNER) * size) for size in (lefts, rights)]
        to_old = [min(len(rows), most // 2) for rows, most in zip(single, joining, strict=True)]
        shared = self._fresh(min(most - old for most, old in zip(joining, to_old, strict=True)))
        made = []
        for size, rows, old in zip((lefts, rights), single, to_old, strict=True):
            made.append([*self._random.sample(rows, old), *shared, *self._fresh(size - old - len(shared))])
        return made[0], made[1]

    def _for_foreign_key(self, lefts: int, rights: int) -> tuple[list[int], list[int]]:
        new, old = self._fresh(lefts), self.left.joined()
        with_partner = new[: max(1, round((1 - WITHOUT_PARTNER) * lefts))]
        to_new = list(islice(cycle(with_partner), round(0.6 * rights)))
        return new, to_new + self._random.choices(old, k=rights - len(to_new))

    def _for_no_key(self, lefts: int, rights: int) -> tuple[list[int], list[int]]:
        shared = self._fresh(max(1, round(0.2 * lefts)))
        to_old, to_new = round(0.4 * lefts), round(0.4 * lefts)
        lonely = self._fresh(max(1, (lefts - to_old - to_new) // 2))
        left = [
            *self._random.choices(self.right.joined(), k=to_old),
            *islice(cycle(shared), to_new),
            *islice(cycle(lonely), lefts - to_old - to_new),
        ]
        old = self._random.choices(self.left.joined(), k=rights // 2)
        return left, [*old, *islice(cycle(shared), rights - len(old))]

    def _fresh(self, size: int) -> list[int]:
        return list(islice(self._values, size))


def expected_rows(kind: str, size: int) -> int:
    """How many rows the join has at first."""
    return {KEY_KEY: size, KEY_FOREIGN_KEY: size * 24 // 10, NON_KEY: size * 48 // 10}[kind]


def _first_values(kind: str, size: int) -> tuple[list[int], list[int]]:
    lonely = round(WITHOUT_PARTNER * size)
    if kind == KEY_KEY:
        return list(range(size)), list(range(size))
    if kind == KEY_FOREIGN_KEY:
        return list(range(size)), list(range(size - lonely)) * 3
    return list(range(size // 2)) * 2, list(range((size - lonely) // 2)) * 6


# --- columns ---


def _rows(numbers: Sequence[int], first: Sequence[int], joined: Sequence[int]) -> pa.Table:
    return pa.table(
        {name: pa.array(values, pa.int32()) for name, values in ((KEY, numbers), ("unique1", first), (JOINED, joined))}
    )


def whole(rows: pa.Table) -> pa.Table:
    """The sixteen columns of the benchmark, and the join attribute, of rows that are given by their numbers."""
    first, second = rows["unique1"].combine_chunks(), rows[KEY].combine_chunks()
    hundredth = _modulo(first, 100)
    twice = pc.multiply(hundredth, pa.scalar(2, pa.int32()))
    return pa.table(
        {
            "unique1": first,
            "unique2": second,
            "two": _modulo(first, 2),
            "four": _modulo(first, 4),
            "ten": _modulo(first, 10),
            "twenty": _modulo(first, 20),
            "onePercent": hundredth,
            "tenPercent": _modulo(first, 10),
            "twentyPercent": _modulo(first, 5),
            "fiftyPercent": _modulo(first, 2),
            "unique3": first,
            "evenOnePercent": twice,
            "oddOnePercent": pc.add(twice, pa.scalar(1, pa.int32())),
            "stringu1": _string_of(first),
            "stringu2": _string_of(second),
            "string4": _STRING_4.take(_modulo(second, 4)),
            JOINED: rows[JOINED].combine_chunks(),
        }
    )


def _modulo(values: pa.Array, by: int) -> pa.Array:
    divisor = pa.scalar(by, pa.int32())
    return pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))


def _string_of(numbers: pa.Array) -> pa.Array:
    """Fifty-two characters: seven letters that count, and as many x as are left."""

    def letters() -> Iterator[pa.Array]:
        left = numbers
        for _ in range(7):
            yield _LETTERS.take(_modulo(left, 26))
            left = pc.divide(left, pa.scalar(26, pa.int32()))

    return pc.binary_join_element_wise(*reversed(list(letters())), "x" * 45, "")


COLUMNS = tuple(whole(_rows([0], [0], [0])).column_names)


def shown(aliases: Sequence[str]) -> Iterator[str]:
    """The columns of a row of the join, as the view calls them."""
    return chain.from_iterable((f"{alias}.{column} AS {alias}_{column}" for column in COLUMNS) for alias in aliases)
