"""A process that does something to a warehouse and is killed at a given step of it; run by `test_crashes.py`.

A step is a moment just before a file, link or folder is made, replaced or removed, and one before, within and after
each commit of deltalake. (Not before a sync: to a process that is killed it makes no difference.) Nothing in viewkeeper
knows of this: the process watches itself.

It reads one order per line of its input, forks, and the fork carries the order out: the imports, and Spark if it is
asked for, are paid once. The answer is a line too: how the fork ended, and the steps that it took.

    crashing_writer.py [--spark]          take orders
    crashing_writer.py --halfway ROOT     be killed in the middle of a Spark job; nothing can be done afterwards
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable
from lakes import ORDER_TYPES, make_growing_commit, make_large_commit, make_small_commit

from viewkeeper.lake import compaction
from viewkeeper.lake.compaction import CompactionPolicy
from viewkeeper.lake.tables import delta_table
from viewkeeper.warehouse import Warehouse

CHANGING = {"os.link", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Steps:
    """Counts the steps below a folder, and kills the process at one of them."""

    def __init__(self, root: str, kill_at: int | None) -> None:
        self.root, self.kill_at, self.taken, self.counting = root, kill_at, [], False
        sys.addaudithook(self._audit)
        delta_table.create_table_with_add_actions = self._around_commit(
            "create_table", delta_table.create_table_with_add_actions
        )
        for name in ("create_write_transaction", "restore"):
            setattr(DeltaTable, name, self._around_commit(name, getattr(DeltaTable, name)))

    def step(self, what: str, leaving: Path | None = None) -> None:
        if not self.counting:
            return
        if len(self.taken) == self.kill_at:
            self.counting = False
            if leaving is not None:
                leaving.parent.mkdir(parents=True, exist_ok=True)
                leaving.with_name(f"{leaving.name}#1").write_text('{"commitInfo":{"timest')
            os.kill(os.getpid(), signal.SIGKILL)
        self.taken.append(what)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in CHANGING and not (event == "open" and isinstance(args[2], int) and args[2] & WRITING):
            return
        path = args[1] if event == "os.link" else args[0]
        if isinstance(path, int) or not os.fspath(path).startswith(self.root):
            return
        # Made though it is there, or removed though it is not: nothing happens.
        if (event == "os.mkdir") != os.path.exists(path) or event in ("open", "os.link"):
            self.step(f"{event} {os.fspath(path).removeprefix(self.root)}")

    def around(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, with a step before and one after it."""

        def around(*args: Any, **options: Any) -> Any:
            self.step(f"before {what}")
            result = function(*args, **options)
            self.step(f"after {what}")
            return result

        return around

    def _around_commit(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def around(*args: Any, **options: Any) -> Any:
            entry = _next_entry(args[0])
            # deltalake writes NAME#1, links it to NAME and removes it. From here one cannot stop it in between, so the
            # file is left behind as it would leave it.
            self.step(f"within {what}", leaving=entry)
            result = function(*args, **options)
            self.step(f"just after {what}", leaving=entry)
            return result

        return self.around(what, around)


def _next_entry(table: DeltaTable | str) -> Path:
    """The file of a Delta log that the next commit to a table makes."""
    if isinstance(table, str):
        return Path(table, "_delta_log", f"{0:020d}.json")
    # A URI that ends in a slash; a table that is about to be restored is at its newest version.
    return Path(unquote(urlsplit(table.table_uri).path), "_delta_log", f"{table.version() + 1:020d}.json")


# --- what it can be told to do ---


def open_it(root: str, steps: Steps) -> None:
    steps.counting = True
    Warehouse.open(root, compaction=None)


def large_commit(root: str, steps: Steps) -> None:
    wh = Warehouse.open(root, compaction=None)
    steps.counting = True
    make_large_commit(wh)


def growing_commit(root: str, steps: Steps) -> None:
    wh = Warehouse.open(root, compaction=None)
    steps.counting = True
    make_growing_commit(wh)


def merge_deltas(root: str, steps: Steps) -> None:
    """A commit, and after it the deltas of its view put into one file."""
    wh = Warehouse.open(root, compaction=CompactionPolicy(files=2))
    steps.counting = True
    make_small_commit(wh)


def vacuum(root: str, steps: Steps) -> None:
    wh = Warehouse.open(root, compaction=None)
    steps.counting = True
    wh.vacuum(0, grace=0)


def compact_here(root: str, steps: Steps) -> None:
    """A small view, on the driver."""
    wh = Warehouse.open(root, compaction=None)
    steps.counting = True
    wh.compact("orders")


def compact(root: str, steps: Steps) -> None:
    from viewkeeper.lake import compacted_base

    compaction.MOST_ROWS = 0
    compacted_base.write_frame = steps.around("write", compacted_base.write_frame)
    wh = Warehouse.open(root, _spark(), compaction=None)
    steps.counting = True
    wh.compact("orders")


def load(root: str, steps: Steps) -> None:
    from viewkeeper.lake.tables import loads as loading

    loading.write_frame = steps.around("write", loading.write_frame)
    spark = _spark()
    wh = Warehouse.open(root, spark, compaction=None)
    rows = spark.range(1000).selectExpr("id", "CAST(id AS STRING) AS item")
    steps.counting = True
    with wh.commit() as commit:
        commit.create("loaded", ORDER_TYPES, rows=rows, group="shop")


_SESSIONS: list[Any] = []
"""the session of the process that forks, if it was asked for one"""


def alter_view(root: str, steps: Steps) -> None:
    """By the definition in the file beside the warehouse."""
    wh = Warehouse.open(root, compaction=None)
    steps.counting = True
    wh.alter_view(Path(root).with_name("definition.sql").read_text())


def _spark() -> Any:
    (session,) = _SESSIONS
    # The connections to the JVM belong to the process that forked; this makes new ones.
    session.sparkContext._gateway._gateway_client.deque.clear()
    return session


TASKS = {
    task.__name__: task
    for task in (open_it, large_commit, growing_commit, merge_deltas, vacuum, compact_here, compact, load, alter_view)
}


def load_and_die_halfway(root: str) -> None:
    """Be killed while Spark is writing, and the JVM first: by a worker that has passed on some rows and has more."""
    from pyspark.sql import functions as F

    from viewkeeper.lake.tables.spark_session import BRIEF, local_session

    spark, driver = local_session("local[1]", BRIEF), os.getpid()
    jvm = spark.sparkContext._gateway.proc.pid

    def passed_on(number: int) -> str:
        if number == 50_000:
            os.kill(jvm, signal.SIGKILL)
            os.kill(driver, signal.SIGKILL)
        return str(number)

    rows = spark.range(100_000).withColumn("item", F.udf(passed_on, "string")("id"))
    with Warehouse.open(root, spark, compaction=None) as wh, wh.commit() as commit:
        commit.create("loaded", ORDER_TYPES, rows=rows, group="shop", distinct=True)


def carry_out(task: str, root: Path, kill_at: int | None) -> dict[str, Any]:
    """Fork, do the task there, and tell how that ended."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            steps = Steps(str(root), kill_at)
            TASKS[task](str(root), steps)
            steps.counting = False
            os.write(writing, json.dumps({"steps": steps.taken}).encode())
        except BaseException:
            os.write(writing, json.dumps({"error": traceback.format_exc()}).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        told = answer.read()
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"killed": killed, **(json.loads(told) if told else {})}


def main() -> None:
    if "--halfway" in sys.argv:
        load_and_die_halfway(sys.argv[-1])
        return
    if "--spark" in sys.argv:
        from viewkeeper.lake.tables.spark_session import BRIEF, local_session

        _SESSIONS.append(local_session("local[1]", BRIEF))
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(carry_out(order["task"], Path(order["root"]), order["kill_at"])), flush=True)


if __name__ == "__main__":
    main()
