"""Dimension hierarchies as they are declared with sources, and checked on the data.

    storeID → city → region       every store is in one city, every city in one region

A declared hierarchy lets a summary-delta carry the region of its city for another one that needs it, and lets a summary
by region be answered from one by city.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.hierarchies import Hierarchy
from viewkeeper.summary.star import Dimension
from viewkeeper.warehouse.source_files import SourceDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeclaredHierarchies:
    """The hierarchies of all dimensions, by relation."""

    def __init__(self, sources: Mapping[str, SourceDefinition]) -> None:
        self._by_relation = {
            f"{source.name}.{table.removeprefix(f'{source.name}.')}": Hierarchy.chain(table, levels)
            for source in sources.values()
            for table, levels in source.hierarchies.items()
            if len(levels) > 1
        }

    def of(self, relation: str) -> Hierarchy | None:
        return self._by_relation.get(relation)

    def determined(self, dimension: Dimension, columns: frozenset[str]) -> frozenset[str]:
        """The columns of a dimension that these ones determine."""
        hierarchy = self.of(dimension.relation.name)
        return hierarchy.closure(columns) if hierarchy is not None and columns else frozenset()

    def check(self, relation: Relation, rows: "DataFrame") -> None:
        """DefinitionError if the rows of a dimension contradict its hierarchy."""
        hierarchy = self.of(relation.name)
        if hierarchy is None:
            return
        from pyspark.sql import functions as F

        for above, below in hierarchy.dependencies:
            for column in (above, below):
                if column not in relation.columns:
                    raise DefinitionError(
                        f"the hierarchy of {relation.name} names {column}, which it has not",
                        f"its columns are {', '.join(relation.columns)}",
                    )
            pairs = rows.select(F.col(f"`{above}`").alias("a"), F.col(f"`{below}`").alias("b")).distinct()
            twice = pairs.groupBy("a").agg(F.count(F.lit(1)).alias("n"), F.collect_list("b").alias("found"))
            wrong = twice.filter((F.col("n") > 1) & F.col("a").isNotNull()).first()
            if wrong is not None:
                found = " and ".join(map(str, sorted(wrong["found"], key=str)[:2]))
                raise DefinitionError(
                    f"{relation.name} contradicts its hierarchy: {above} {wrong['a']} has the {below} {found}",
                    "correct the rows, or declare the source without this hierarchy",
                )
