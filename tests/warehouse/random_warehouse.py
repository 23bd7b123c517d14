"""A random life of a warehouse beside a model of it: deltas, commits, compactions, crashes, re-opens, vacuums.

    model: state -> view -> bag          what recomputation would give

Everything comes from one seed.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from math import nan

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from viewkeeper import warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import Random, seeded
from viewkeeper.lake import compaction
from viewkeeper.lake.compaction import merge_deltas
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables import staged
from viewkeeper.messages import position
from viewkeeper.warehouse import Warehouse

COLUMNS = {
    "id": "INT",
    "name": "STRING",
    "price": "DECIMAL(10, 2)",
    "ratio": "DOUBLE",
    "seen": "TIMESTAMP",
    "day": "DATE",
    "raw": "BINARY",
}
NAMES = tuple(COLUMNS)
LAYOUTS = {"big": "appended", "other": "appended", "small": "rewritten"}

IDS = (0, 1, None)
STRINGS = ("a", "A", "a ", "", None, "é", "é")
PRICES = (Decimal("1.10"), Decimal("-0.01"), None)
RATIOS = (0.0, -0.0, nan, 1.5, None)
TIMES = (datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(2024, 3, 31, 1, 30, tzinfo=UTC), None)
DAYS = (date(2024, 2, 29), None)
BYTES = (b"", b"\x00", None)

Bag = Counter[tuple[object, ...]]


class Killed(BaseException):
    """The process is gone: from here on nothing is written any more."""


class DyingStore(LocalStore):
    """Dies at the n-th thing that it is asked to write or delete, and stays dead."""

    left: int | None = None

    def _step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed

    def create_exclusive(self, name: str, content: bytes) -> None:
        self._step()
        super().create_exclusive(name, content)
        self._step()

    def write(self, name: str, content: bytes) -> None:
        self._step()
        super().write(name, content)

    def make_durable(self, names, *, new_folders: bool) -> None:  # after Spark or deltalake has written
        self._step()
        super().make_durable(names, new_folders=new_folders)

    def move(self, name: str, target: str) -> None:
        self._step()
        super().move(name, target)

    def delete(self, name: str) -> None:
        self._step()
        super().delete(name)


@contextmanager
def dying_at_delta_commits(store: DyingStore, monkeypatch) -> Iterator[None]:
    """Delta commits are steps, too: the store dies before one as well as after it."""
    with monkeypatch.context() as patch:
        for name in ("change_table", "create_table"):
            original = getattr(staged, name)

            def step_first(*args, original=original):
                store._step()
                return original(*args)

            patch.setattr(staged, name, step_first)
        yield


class RandomWarehouse:
    """The warehouse and its model."""

    def __init__(self, folder, spark, seed: int, monkeypatch) -> None:
        self.folder, self.spark, self.random, self.monkeypatch = folder, spark, seeded(seed), monkeypatch
        self.states: list[dict[str, Bag]] = []
        self.vectors: list[dict[str, str]] = []
        self.steps: list[str] = []
        self.warehouse, self.store = self._open()
        first = {view: random_bag(self.random) for view in LAYOUTS}
        with self.warehouse.commit() as commit:
            for view, layout in LAYOUTS.items():
                rows = self._in_some_form(first[view], engines=("memory", "spark"))
                commit.create(view, COLUMNS, rows=rows, layout=layout, vector={"s": position(0)})
        self.states.append(first)
        self.vectors.append({"s": position(0)})

    def _open(self) -> tuple[Warehouse, DyingStore]:
        store = DyingStore(self.folder)
        with self.monkeypatch.context() as patch:
            patch.setattr(warehouse, "open_store", lambda path: store)
            # Compaction is one of the steps below, not something that happens by itself.
            return Warehouse.open(self.folder, self.spark, compaction=None), store

    # --- one step of its life ---

    def live(self, steps: int) -> None:
        actions = [*[self.change] * 4, self.compact, self.merge, self.reopen, *[self.crash] * 3]
        for _ in range(steps):
            self.random.choice(actions)()

    def change(self) -> None:
        """One commit with one to three states."""
        self.steps.append("change")
        states, vectors = self._next_states()
        self._commit(states)
        self.states += [after for after, _ in states]
        self.vectors += vectors

    def _next_states(self):
        """What a commit will do: per state the bags afterwards, and the changes that lead there."""
        made, current = [], self.states[-1]
        for _ in range(self.random.randint(1, 3)):
            changes = {
                view: random_change(self.random, current[view]) for view in LAYOUTS if self.random.random() < 0.8
            }
            current = {view: applied(bag, changes.get(view, {})) for view, bag in current.items()}
            made.append((current, changes))
        start = len(self.states)
        return made, [{"s": position(start + number)} for number in range(len(made))]

    def _commit(self, states) -> None:
        start = len(self.states)
        with self.warehouse.commit() as commit:
            for number, (_, changes) in enumerate(states, start):
                forms = {view: self._in_some_form(change) for view, change in changes.items()}
                assert commit.state("main", {"s": position(number)}, forms) == number

    def compact(self) -> None:
        self.steps.append("compact")
        self._compact()

    def _compact(self) -> None:
        """On the driver, or by Spark as what is large."""
        self.monkeypatch.setattr(compaction, "MOST_ROWS", (0, compaction.MOST_BYTES)[len(self.steps) % 2])
        self.warehouse.compact()

    def merge(self) -> None:
        self.steps.append("merge")
        writer = self.warehouse._writer
        merge_deltas(writer, writer.catalog["big"])

    def reopen(self) -> None:
        self.steps.append("reopen")
        self.warehouse.close()
        self.warehouse, self.store = self._open()

    def crash(self) -> None:
        """Die somewhere in a commit or in a compaction, and open again, perhaps dying once more on the way."""
        states, vectors = self._next_states()
        compacting = self.random.random() < 0.2
        self.store.left = self.random.randint(0, 14)
        self.steps.append(f"{'compact' if compacting else 'change'}, dying at step {self.store.left}")
        try:
            with dying_at_delta_commits(self.store, self.monkeypatch):
                if compacting:
                    self._compact()
                else:
                    self._commit(states)
        except Killed:
            pass
        self.warehouse._writer._held.close()  # as the kernel does when a process dies
        self.warehouse, self.store = self._open()
        last = self.warehouse.snapshot()
        with last:
            if last.state("big") == len(self.states) + len(states) - 1 and not compacting:
                # The record was written: all of it is there.
                self.states += [after for after, _ in states]
                self.vectors += vectors
            assert last.state("big") == len(self.states) - 1

    # --- comparing ---

    def shown(self, view: str) -> dict[int, Bag]:
        """Every retained state of a view, as the warehouse shows it."""
        return {state.state: self.weights(view, state.state) for state in self.warehouse.states(view)}

    def weights(self, view: str, state: int) -> Bag:
        """One state, as distinct rows with their counts."""
        weighted = collected(self.warehouse.read(view, state, weights=True))
        assert all(count > 0 for count in weighted.values())
        return weighted

    def bag(self, view: str, state: int) -> Bag:
        """One state, row by row."""
        return collected(self.warehouse.read(view, state).withColumn("_vk_weight", F.lit(1)))

    def changes(self, view: str, since: int, until: int) -> Bag:
        return collected(self.warehouse.changes(view, since, until).drop("_vk_state"))

    def _in_some_form(self, bag: Bag, engines=(*["memory"] * 6, "spark", "arrow")):
        engine = self.random.choice(engines)
        zset = MemoryZSet(NAMES, bag.items())
        if engine == "memory":
            return zset
        frame = self.spark.createDataFrame(
            [(*row, weight) for row, weight in bag.items()],
            ", ".join(f"{name} {type}" for name, type in COLUMNS.items()) + ", _vk_weight BIGINT",
        )
        return frame if engine == "spark" else frame.toArrow()

    def close(self) -> None:
        self.warehouse.close()


def collected(frame: DataFrame) -> Bag:
    """The rows of a DataFrame with their weights; a row must not come twice where counts are asked for."""
    bag: Bag = Counter()
    columns = frame.toArrow().to_pydict().values()
    for *row, weight in zip(*columns, strict=True):
        bag[canonical(row)] += weight
    return bag


def canonical(row) -> tuple[object, ...]:
    """NaN as something that equals itself, 0.0 for -0.0."""
    return tuple("NaN" if value != value else value + 0.0 if isinstance(value, float) else value for value in row)


def random_row(random: Random) -> tuple[object, ...]:
    return tuple(random.choice(values) for values in (IDS, STRINGS, PRICES, RATIOS, TIMES, DAYS, BYTES))


def random_bag(random: Random) -> Bag:
    return Counter(random.choices([random_row(random) for _ in range(4)], k=random.randint(0, 6)))


def random_change(random: Random, bag: Bag) -> Bag:
    """Deletions of what is there, insertions of new and of known rows."""
    known = list(bag.elements())
    gone = Counter(random.sample(known, random.randint(0, min(3, len(known)))))
    new = Counter(
        [*random.choices(known, k=1), *random_bag(random).elements()] if known else random_bag(random).elements()
    )
    return Counter({row: new[row] - gone[row] for row in [*new, *gone]})


def applied(bag: Bag, change: Bag) -> Bag:
    after = Counter(bag)
    for row, weight in change.items():
        after[row] += weight
    return +after
