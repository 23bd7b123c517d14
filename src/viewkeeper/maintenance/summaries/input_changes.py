"""What has changed at the views that a lattice of summaries reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.maintenance.contents import frame_of_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_CHANGES_ON_DRIVER = 100_000
"""Changes that are propagated on the driver; more are a job of Spark."""


@dataclass(frozen=True)
class Changes:
    """Signed rows of each view, on the driver or in Spark, and how many."""

    held: "Mapping[str, pa.Table | DataFrame]"
    rows: Mapping[str, int]
    applied: bool
    """whether the stored views have these changes already"""

    def frame(self, spark: "SparkSession", view: str) -> "DataFrame | None":
        """The changes of a view in Spark; None if there are none."""
        held = self.held.get(view)
        return frame_of_table(spark, held) if isinstance(held, pa.Table) else held

    def table(self, view: str) -> pa.Table | None:
        """The same on the driver, if they are there."""
        held = self.held.get(view)
        return held if isinstance(held, pa.Table) else None

    @property
    def on_driver(self) -> bool:
        few = sum(self.rows.values()) <= MOST_CHANGES_ON_DRIVER
        return few and all(isinstance(held, pa.Table) for held in self.held.values())

    @property
    def none(self) -> bool:
        return not any(self.rows.values())
