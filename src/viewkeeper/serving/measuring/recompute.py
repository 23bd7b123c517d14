"""A view recomputed from its sources by Spark, and thrown away: what it would cost without maintenance.

    reading      all relations of the view, through their source, as a load does
    computing    the SELECT of the view over them, on a Spark that is warm; the result is not stored

Writing the result and telling it from the last one would come on top.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.clock import monotonic
from viewkeeper.lake.log.catalog import tables_of
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.views.stored_views import stored_view
from viewkeeper.maintenance.collected_rows import CollectedRows
from viewkeeper.maintenance.typed_rows import weighted_frame
from viewkeeper.mediator.base_image import image_at
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.definition import read_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.syntax import not_too_deep, spark_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Recomputed:
    """Seconds, and the rows that were read."""

    read_seconds: float
    compute_seconds: float
    rows_read: int

    @property
    def seconds(self) -> float:
        return self.read_seconds + self.compute_seconds


def recomputed(sql: str, snapshot: HeldCommit, sources: KnownSources, relations: Mapping[str, Relation]) -> Recomputed:
    """Compute the view that `sql` defines; SourceError if a source cannot be read."""
    spark = snapshot.files.spark()
    # What Spark compiles and loads for its first job is not what a recompute costs.
    spark.range(1).count()
    with not_too_deep():
        query = read_definition(sql, None).query
        needed = {table: _relation(table, relations) for table in query.find_all(exp.Table)}
        read = {one.name: one for one in needed.values()}
        with tempfile.TemporaryDirectory(prefix="viewkeeper-") as folder:
            begin = monotonic()
            frames, rows = _read(read, snapshot, sources, LocalStore(Path(folder)), spark)
            read_at = monotonic()
            _compute(query, needed, frames, spark)
            return Recomputed(read_at - begin, monotonic() - read_at, rows)


def _relation(table: exp.Table, relations: Mapping[str, Relation]) -> Relation:
    name = ".".join(part.name for part in table.parts).lower()
    return next(relation for known, relation in relations.items() if known.lower() == name)


def _read(
    relations: Mapping[str, Relation],
    snapshot: HeldCommit,
    sources: KnownSources,
    store: LocalStore,
    spark: "SparkSession",
) -> "tuple[dict[str, DataFrame], int]":
    """A frame for each relation, and how many rows were read: those of views from where they are stored."""
    engines, rows = Engines(snapshot.files.spark), 0

    def come(more: int) -> None:
        nonlocal rows
        rows += more

    at_sources = {name: one for name, one in relations.items() if one.source != VIEWS}
    contents: dict[str, Any] = {}
    if at_sources:
        contents, _ = image_at(
            {one.source: sources.source(one.source) for one in at_sources.values()},
            at_sources,
            {},
            lambda relation: CollectedRows(relation, engines, store, "rows", come),
        )
    # A correction more or less makes no difference to how long it takes, and adding them up would.
    frames = {
        name: weighted_frame(spark, held, relations[name]).filter(f"{WEIGHT} > 0").drop(WEIGHT)
        for name, held in contents.items()
    }
    stored = relations.keys() - frames.keys()
    rows += sum(_stored_rows(snapshot, name) for name in stored)
    return {**frames, **{name: stored_view(snapshot, name).bag() for name in stored}}, rows


def _stored_rows(snapshot: HeldCommit, view: str) -> int:
    """Of a view that is computed, those of the first table that it is computed from."""
    return snapshot.record.tables[tables_of(snapshot.catalog, snapshot.catalog[view])[0].name].rows


def _compute(
    query: exp.Expr,
    needed: Mapping[exp.Table, Relation],
    frames: "Mapping[str, DataFrame]",
    spark: "SparkSession",
) -> None:
    from viewkeeper.summary.propagate import TemporaryNames

    with TemporaryNames(spark) as temporary:
        names = {name: temporary.name(frame) for name, frame in frames.items()}
        for table, relation in needed.items():
            alias = table.alias or table.name
            stand_in = exp.to_table(names[relation.name].strip("`")).as_(alias, table=True)
            table.replace(stand_in)
        spark.sql(spark_sql(query)).write.format("noop").mode("overwrite").save()
