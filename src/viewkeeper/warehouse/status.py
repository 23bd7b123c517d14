"""What `status` says: of the warehouse, and of each view. It needs no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.messages import Vector
from viewkeeper.warehouse.pins import pinned_commits
from viewkeeper.warehouse.snapshot import Files


@dataclass(frozen=True)
class ViewStatus:
    """One view: its last state, and what it takes on disk."""

    view: str
    group: str
    layout: str
    state: int
    oldest: int
    """the oldest state that can be read"""
    vector: Vector
    rows: int
    files: int
    bytes: int
    pending_files: int
    pending_rows: int
    folder: str


@dataclass(frozen=True)
class Status:
    """The warehouse at its last commit."""

    path: str
    id: str
    commit: int
    time: str
    commits: int
    """how many commits are retained"""
    readers: int
    """how many snapshots are pinned"""
    views: tuple[ViewStatus, ...]
    metrics: Mapping[str, object]
    """figures of the last commit"""


def status_of(files: Files, identity: str) -> Status:
    """The status at the last commit."""
    record = files.log.last()
    views = []
    for name, view in sorted(files.catalogs.read(record.catalog).items()):
        table, group = record.tables[name], record.groups[view.group]
        listed = files.tables.files(view, table)
        views.append(
            ViewStatus(
                name,
                view.group,
                view.layout.value,
                group.last,
                table.oldest,
                dict(group.vector),
                table.rows,
                len(listed),
                sum(file.size for file in listed),
                table.pending.files,
                table.pending.rows,
                str(files.store.path(view.folder)),
            )
        )
    return Status(
        str(files.store),
        identity,
        record.commit,
        record.time,
        len(files.log.numbers()),
        len(pinned_commits(files.store)),
        tuple(views),
        record.metrics,
    )
