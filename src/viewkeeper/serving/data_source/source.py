"""The data source itself: `spark.dataSource.register(ViewkeeperDataSource)`, where Spark does not find it by itself.

Everything here runs in workers of Spark, which import it anew: what is heavy is imported where it is used.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from viewkeeper.serving.data_source.batch import ViewReader
    from viewkeeper.serving.data_source.stream import ViewStreamReader


class ViewkeeperDataSource(DataSource):
    """The views of a warehouse, by `spark.read` and `spark.readStream`."""

    commit: int | None = None
    """the commit that was the last one when the load was made"""

    @classmethod
    def name(cls) -> str:
        return "viewkeeper"

    def schema(self) -> str:
        from viewkeeper.serving.data_source.batch import columns_of
        from viewkeeper.serving.data_source.opened import schema_text, snapshot_of
        from viewkeeper.serving.data_source.options import read_options

        asked = read_options(self.options)
        snapshot = snapshot_of(asked.warehouse, None)
        self.commit = snapshot.commit
        return schema_text(columns_of(snapshot, asked))

    def reader(self, schema: "StructType") -> "ViewReader":
        from viewkeeper.serving.data_source.batch import ViewReader
        from viewkeeper.serving.data_source.options import read_options

        return ViewReader(read_options(self.options), self.commit, schema)

    def streamReader(self, schema: "StructType") -> "ViewStreamReader":  # noqa: N802 - Spark's name
        from viewkeeper.serving.data_source.options import read_options
        from viewkeeper.serving.data_source.stream import ViewStreamReader

        return ViewStreamReader(read_options(self.options), schema)
