"""Readers while commits, compactions and vacuums go on: one vector per snapshot, no missing file, no error."""

import threading

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.lake.compaction import CompactionPolicy
from viewkeeper.messages import position
from viewkeeper.warehouse import Warehouse
from waiting import joined, until

COMMITS = 100
NUMBERS, LAST = ("number",), ("number", "text")


def test_readers_never_see_a_mixed_vector_a_missing_file_or_an_error(tmp_path, spark):
    lake = tmp_path / "lake"
    done = threading.Event()
    failures: list[BaseException] = []
    seen: list[list[int]] = [[], []]

    # State s: `numbers` holds 0..s, `last` holds s alone, and the vector says s.
    with Warehouse.open(lake, spark, compaction=CompactionPolicy(share=0.3, least_rows=10, files=8)) as writer:
        with writer.commit() as commit:
            first = {"source": position(0)}
            commit.create("numbers", {"number": "BIGINT"}, rows=MemoryZSet.of(NUMBERS, (0,)), vector=first)
            rows = MemoryZSet.of(LAST, (0, "zero"))
            commit.create("last", {"number": "BIGINT", "text": "STRING"}, rows=rows)
            commit.create("small", {"number": "BIGINT", "text": "STRING"}, rows=rows, layout="rewritten")

        def write() -> None:
            for number in range(1, COMMITS + 1):
                moved = MemoryZSet(LAST, [((number - 1, "zero"), -1), ((number, "zero"), 1)])
                changes = {"numbers": MemoryZSet.of(NUMBERS, (number,)), "last": moved, "small": moved}
                with writer.commit() as commit:
                    commit.state("main", {"source": position(number)}, changes)
                if number % 25 == 0:
                    writer.vacuum(0, grace=0)
                if number % 50 == 0:
                    let_everyone_read()

        def let_everyone_read() -> None:
            """However slow they are: the second reading from now on has begun now, and sees this state."""
            enough = [len(mine) + 2 for mine in seen]
            until(lambda: failures or all(len(mine) >= least for mine, least in zip(seen, enough, strict=True)))

        def read(mine: list[int]) -> None:
            with Warehouse.open(lake, spark, read_only=True) as reader:
                while not done.is_set():
                    with reader.snapshot() as snapshot:
                        state = snapshot.state("numbers")
                        assert snapshot.vector("numbers") == {"source": position(state)}
                        (counted,) = snapshot.sql(
                            "SELECT COUNT(*) AS n, MAX(number) AS top, (SELECT MAX(number) FROM last) AS last, "
                            "(SELECT COUNT(*) FROM last) AS lasts, (SELECT MAX(number) FROM small) AS small "
                            "FROM numbers WHERE number >= 0"
                        ).collect()
                        assert tuple(counted) == (state + 1, state, state, 1, state)
                        mine.append(state)

        def guarded(work, *arguments) -> None:
            try:
                work(*arguments)
            except BaseException as error:
                failures.append(error)
                done.set()

        readers = [threading.Thread(target=guarded, args=(read, mine)) for mine in seen]
        for reader in readers:
            reader.start()
        guarded(write)
        done.set()
        joined(*readers)
    if failures:
        raise failures[0]
    for mine in seen:
        assert mine == sorted(mine)
        assert len(set(mine)) > 1
    with Warehouse.open(lake, spark, read_only=True) as after:
        assert [state.state for state in after.states("numbers")][-1] == COMMITS
        assert after.read("numbers").count() == COMMITS + 1
        assert after.status().readers == 0
