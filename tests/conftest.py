"""Settings of the whole suite, and what it shares: one Spark session, one server of each kind."""

import faulthandler
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from mariadb_server import mariadb
from postgres_server import postgres_server

from run_size import FAST, LEFT_OUT_OF_FAST, LONGEST, examples
from spark_archive import use_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Here, and not imported by each file that uses them, so that one server of each kind serves them all.
__all__ = ["mariadb", "postgres_server"]

# The same examples in every run: a failure in CI is a failure here.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=examples(100))
settings.register_profile("fast", settings.get_profile("repeatable"), max_examples=20)
settings.load_profile("fast" if FAST else "repeatable")

use_archive()

# A shell that runs the suite in its background ignores Ctrl-C for it, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

NO_COMPILING = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Thousands of tiny queries: compiling each of them takes longer than running it. On several processes they are."""
NO_PLAN_TEXTS = {"spark.sql.ui.explainMode": "simple"}
"""Spark describes the plan of every query for its web pages, which are off; the default form takes the longest."""
YOUNG = " -Xms512m -Xmn256m"
"""The heap of a process that lasts, from the start: growing to it takes hundreds of collections."""


def _test_master() -> tuple[str, dict[str, str]]:
    from viewkeeper.lake.tables.spark_session import BRIEF

    master = os.environ.get("VIEWKEEPER_TEST_MASTER", "local[2]")
    if master.startswith("local["):
        options = {name: value + YOUNG for name, value in BRIEF.items()}
        return master, {**options, **NO_COMPILING, **NO_PLAN_TEXTS}
    import pyspark

    # Workers are started from the package that the driver runs.
    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return master, {"spark.executor.memory": "800m", "spark.driver.memory": "1g", **BRIEF}


@pytest.fixture(scope="session", autouse=not FAST)
def every_session_is_one_for_tests() -> None:
    """Also the one that a command or a page starts, if no test before it has used the fixture: others go on with it."""
    from viewkeeper.lake.tables import spark_session

    master, settings = _test_master()
    if master.startswith("local["):
        spark_session.SETTINGS.update(settings)


SERVERS = {"postgres_server", "mariadb"}
SLOW = ("spark", "servers", "processes")
"""marks of what `make check-fast` leaves out"""


def pytest_configure() -> None:
    """Tests that go through a whole warehouse are for `make test`."""
    if FAST:
        from viewkeeper.warehouse import Warehouse

        def refuse(*_: object, **__: object) -> None:
            pytest.skip("it opens a warehouse; 'make test' runs it")

        Warehouse.open = refuse  # type: ignore[method-assign,assignment]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what needs Spark or a server, by its fixtures; tests that start one by themselves are marked in place."""
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        if "spark" in used:
            item.add_marker("spark")
        if used & SERVERS:
            item.add_marker("servers")
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(0))
    first = {f"tests/{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.nodeid.partition("::")[0], len(first)))
    if FAST:
        long = tuple(f"tests/{name}" for name in LEFT_OUT_OF_FAST)
        slow = {one for one in items if any(map(one.get_closest_marker, SLOW)) or one.nodeid.startswith(long)}
        config.hook.pytest_deselected(items=list(slow))
        items[:] = [item for item in items if item not in slow]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("soak"):
        # A long run is no hang: see `faulthandler_timeout` in pyproject.toml.
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=FAST)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test that `make check-fast` runs starts a program: Spark, a server or another."""

    def refuse(process: object, words: object, *_: object, **__: object) -> None:
        pytest.skip("it starts a program; 'make test' runs it")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(subprocess.Popen, "__del__", lambda _: None)


@pytest.fixture(scope="session", autouse=True)
def own_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the user of the suite allows to sources is noted in a folder of the suite, also by its subprocesses."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session of the suite, one in each process that runs tests; VIEWKEEPER_TEST_MASTER puts it on several."""
    from viewkeeper.lake.tables.spark_session import local_session

    session = local_session(*_test_master())
    yield session
    session.stop()
