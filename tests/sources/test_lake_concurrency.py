"""Folders and Delta tables under writers that do not wait, readers in threads, and kills at any moment."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from exactness import Recorded, matching, whole
from lake_rows import arrow, random_row
from test_delta import edit as edit_delta
from test_delta import put
from test_delta import source_of as delta_source
from test_files import csv, edit, next_events
from test_files import source_of as files_source

from viewkeeper.clock import seeded
from viewkeeper.sources.base import Source
from viewkeeper.sources.files import snapshots
from waiting import program

ANSWERS = [pytest.param(25, id="short"), pytest.param(2000, id="soak", marks=pytest.mark.soak)]


@contextmanager
def busy(*jobs: Callable[[], Any]) -> Iterator[threading.Event]:
    """Each job again and again in a thread of its own, until the event is set."""
    stop = threading.Event()

    def loop(job: Callable[[], Any]) -> None:
        try:
            while not stop.is_set():
                job()
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(loop, job) for job in jobs]
        try:
            yield stop
        finally:
            stop.set()
    for future in running:
        future.result()


def run(source: Source, recorded: Recorded, answers: int, *writers: Callable[[], Any]) -> None:
    """Writers write and two readers read, until there are so many answers; what was delivered is acknowledged."""
    relations = list(source.relations.values())

    def reader() -> None:
        recorded.read(*(whole(one) for one in relations), *(matching(one, "id", 1, 2, 3) for one in relations))

    def acknowledge() -> None:
        if done := recorded.transactions:
            source.acknowledge(done[-1].position)
        source.end()

    with busy(*writers, reader, reader, acknowledge) as stop:
        while len(recorded.answers) < answers or len(recorded.transactions) < 3:
            if stop.wait(0.02) or recorded.failure is not None:
                break


@pytest.mark.parametrize("answers", ANSWERS)
def test_files_under_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: int) -> None:
    # On a busy machine the folder may not be quiet for longer than a user would wait.
    monkeypatch.setattr(snapshots, "PATIENCE", 300.0)
    folder, random = tmp_path / "lake", seeded(21)
    (folder / "parts").mkdir(parents=True)
    pause = threading.Event()
    edit(folder, "parquet", random)
    while not list((folder / "parts").iterdir()):
        edit(folder, "parquet", random)
    source = files_source(folder, "key=things.id")

    def writer() -> None:
        edit(folder, "parquet", random)
        pause.wait(random.random() * 0.1)

    with Recorded(source) as recorded:
        run(source, recorded, answers, writer)
        recorded.catch_up()
        recorded.read(*map(whole, source.relations.values()))
    recorded.check()


@pytest.mark.parametrize("answers", ANSWERS)
def test_delta_under_writers(tmp_path: Path, answers: int) -> None:
    lake, random = tmp_path / "lake", seeded(22)
    put(lake / "a", (1, "x"))
    put(lake / "b", (1, "x"), configuration={"delta.enableChangeDataFeed": "true"})
    source = delta_source(lake)
    dice = seeded(23)

    def writer_of_a() -> None:
        put(lake / "a", (random.randrange(9), "a"))
        if random.random() < 0.3:
            DeltaTable(lake / "a").delete(f"id = {random.randrange(9)}")

    def writer_of_b() -> None:
        put(lake / "b", *((dice.randrange(9), "b") for _ in range(3)))
        DeltaTable(lake / "b").update(
            new_values={"item": f"{dice.randrange(3)}"}, predicate=f"id = {dice.randrange(9)}"
        )

    with Recorded(source) as recorded:
        run(source, recorded, answers, writer_of_a, writer_of_b)
        recorded.catch_up()
        recorded.read(*map(whole, source.relations.values()))
    recorded.check()
    versions = DeltaTable(lake / "a").version() + DeltaTable(lake / "b").version()
    assert int(recorded.answers[-1].position) == versions


COPYING = """
import sys, threading
from pathlib import Path
from viewkeeper.sources.base import Request
from viewkeeper.sources.files import FilesSource
folder = Path(sys.argv[1])
source = FilesSource(Request("shop", f"files://{folder}?quiet=0&poll=0", "w1"), None, folder.with_name("workspace"))
print("ready", flush=True)
for batch in source.transactions(None if len(sys.argv) < 3 else sys.argv[2], threading.Event()):
    source.acknowledge(batch.upto)
"""


@pytest.mark.parametrize("kills", [pytest.param(4, id="short"), pytest.param(80, id="soak", marks=pytest.mark.soak)])
@pytest.mark.processes
def test_kills_while_a_folder_is_copied(tmp_path: Path, kills: int) -> None:
    folder, random, wait = tmp_path / "lake", seeded(24), threading.Event()
    folder.mkdir()
    csv(folder / "orders.csv", "id,item\n0,pen\n")
    source = files_source(folder)
    source.install()
    for number in range(kills):
        after = f"{source._copies.numbers()[-1]:020d}"
        command = [sys.executable, "-c", COPYING, str(folder), after]
        with program(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            for step in range(20):
                csv(folder / "orders.csv", "id,item\n" + f"{number},{step}\n" * random.randrange(1, 2000))
                wait.wait(random.random() * 0.01)
            process.kill()
        numbers = source._copies.numbers()
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "a number is missing"
        source = files_source(folder)
        with Recorded(source, after=f"{numbers[-1]:020d}") as recorded:
            csv(folder / "orders.csv", f"id,item\n{number},end\n")
            recorded.catch_up()
            recorded.read(*map(whole, source.relations.values()))
        recorded.check()
        assert recorded.answers[-1].bags == [Counter({(number, "end"): 1})]
    assert next_events(source, source.end()) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_any_history_of_a_delta_table(tmp_path: Path, seed: int) -> None:
    path, random = tmp_path / "things", seeded(seed)
    feed = {"delta.enableChangeDataFeed": "true"} if seed % 2 else {}
    write_deltalake(path, arrow([random_row(random, number) for number in range(6)]), configuration=feed)
    source = delta_source(path)
    with Recorded(source) as recorded:
        for _ in range(60):
            edit_delta(path, random)
            recorded.read(*map(whole, source.relations.values()))
        recorded.catch_up()
    recorded.check()
