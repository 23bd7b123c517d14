"""The engines that summaries are kept with, whatever their size: everything small is done on the driver otherwise.

driver      Arrow; asking for Spark is an error
appended    the same, but large tables: changes are appended to them, and not rewritten
spark       jobs compute first contents and summary-deltas
files       and read every table from its files; tables are looked up by jobs too
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from viewkeeper.warehouse.summaries import contents, creating, first_content, round, waiting

ENGINES = ("driver", "appended", "spark", "files")
_FEW = (round, "MOST_CHANGES_ON_DRIVER", -1), (waiting, "MOST_CHANGES_ON_DRIVER", -1), (first_content, "SMALL", -1)
_APPENDED = ((creating, "MOST_REWRITTEN", -1),)
_LARGE = ((contents, "SMALL", -1), (contents, "MOST_ON_DRIVER", -1))
_SETTINGS: dict[str, tuple[tuple[Any, str, int], ...]] = {
    "driver": (),
    "appended": _APPENDED,
    "spark": _FEW,
    "files": (*_FEW, *_LARGE, *_APPENDED),
}


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Everything that is done in the block is done with this engine."""
    with ExitStack() as stack:
        for module, setting, value in _SETTINGS[name]:
            stack.enter_context(patch.object(module, setting, value))
        yield


def on_driver(name: str) -> bool:
    return name in ("driver", "appended")


def no_spark() -> Any:
    raise AssertionError("this life is to be lived on the driver, and Spark was asked for")


def session_of(name: str, spark: Callable[[], Any]) -> Callable[[], Any]:
    """How a warehouse comes to Spark."""
    return no_spark if on_driver(name) else spark


@contextmanager
def uncompiled(spark: Any) -> Iterator[Any]:
    """A session for hundreds of tiny queries: compiling each of them would take longer than running it."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield spark
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
