"""The engines that summaries are kept with, whatever their size: everything small is done on the driver otherwise.

driver      Arrow; asking for Spark is an error
appended    the same, but large tables: changes are appended to them, and not rewritten
spark       jobs compute first contents and summary-deltas
files       and read every table from its files; tables are looked up by jobs too
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from summary_oracle import Oracle

from viewkeeper.lake.log.record import Record
from viewkeeper.maintenance import contents, spark_agreement
from viewkeeper.maintenance.altering import altering
from viewkeeper.maintenance.summaries import creating, first_content, input_changes, round, waiting
from viewkeeper.maintenance.summaries.input_changes import Changes
from viewkeeper.maintenance.summaries.round import Rounds
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.summary.statements import extremes_of_groups, whole_table

ENGINES = ("driver", "appended", "recompute", "spark", "files")
_FEW = (
    (input_changes, "MOST_CHANGES_ON_DRIVER", -1),
    (waiting, "MOST_CHANGES_ON_DRIVER", -1),
    (first_content, "SMALL", -1),
)
_APPENDED = ((creating, "MOST_REWRITTEN", -1),)
# That Spark reads a definition as the driver does is compared when a view is created, in Spark; other tests have that.
_AGREED = (spark_agreement, "check_agreement", lambda *_: None), (altering, "check_agreement", lambda *_: None)
_LARGE = ((contents, "SMALL", -1), (contents, "MOST_ON_DRIVER", -1))


def recomputed_in_duckdb(
    rounds: Rounds, lattice: Lattice, record: Record, changes: Changes | None, wanted: Mapping[str, pa.Table]
) -> dict[str, pa.Table]:
    """MIN and MAX of some groups, from the stored core."""
    changes = changes or Changes({}, {}, applied=True)
    tables = {"fact": rounds.on_driver.fact_table(lattice, record, changes)}
    dimensions = {path: f"dimension_{place}" for place, path in enumerate(lattice.paths)}
    for path, view in lattice.paths.items():
        tables[dimensions[path]] = rounds.on_driver.dimension_table(lattice, view, record, changes)[1]
    edges = {name: round._from_changes(lattice, name) for name in lattice.virtual}
    behind = {name: whole_table(edge, "fact", dimensions) for name, edge in edges.items()}
    oracle, answer = Oracle(), {}
    try:
        for name, keys in wanted.items():
            statement = extremes_of_groups(lattice.nodes[name], behind, lattice.nodes, "wanted")
            # DuckDB knows no table without columns.
            asked = keys if keys.num_columns else pa.table({"one": [1] * keys.num_rows})
            answer[name] = oracle.answer(statement, {**tables, "wanted": asked})
    finally:
        oracle.close()
    return answer


_SETTINGS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "driver": _AGREED,
    "appended": (*_AGREED, *_APPENDED),
    "recompute": (*_AGREED, (Rounds, "_recomputed", recomputed_in_duckdb)),
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
    return name in ("driver", "appended", "recompute")


def no_spark() -> Any:
    raise AssertionError("this life is to be lived on the driver, and Spark was requested")


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
