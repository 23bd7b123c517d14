"""When compaction is worth it."""

from dataclasses import dataclass

from viewkeeper.lake.log.record import TableState


@dataclass(frozen=True)
class CompactionPolicy:
    """When deltas are compacted: `share` of the base's rows, or so many small `files`."""

    share: float = 0.2
    least_rows: int = 100_000
    files: int = 64

    def wants_new_base(self, table: TableState) -> bool:
        base_rows = max(table.rows, self.least_rows)
        return table.pending.rows > self.share * base_rows

    def wants_merged_deltas(self, table: TableState) -> bool:
        return table.pending.files >= self.files


DEFAULT_POLICY = CompactionPolicy()
