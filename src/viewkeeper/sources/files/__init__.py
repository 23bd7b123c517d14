"""A folder of Parquet, CSV or JSON files that somebody replaces at will: the papers' legacy source."""

from viewkeeper.sources.files.source import FilesSource

__all__ = ["FilesSource"]
