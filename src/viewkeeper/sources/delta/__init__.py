"""Delta tables that somebody else writes, as a source."""

from viewkeeper.sources.delta.source import DeltaSource

__all__ = ["DeltaSource"]
