"""How Spark finds the format `viewkeeper` by itself: it looks for `DefaultSource` in packages named `pyspark_*`."""

from viewkeeper.serving.data_source.source import ViewkeeperDataSource as DefaultSource

__all__ = ["DefaultSource"]
