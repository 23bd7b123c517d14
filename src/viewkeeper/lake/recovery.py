"""After a crash: tables that are ahead of the last record are put back, files that no record knows are swept.

    the Delta version of a table  >  the version in record N      ⟶  restore it, and say so in record N + 1
    a data file of commit  >  N                                   ⟶  a leftover

Data files carry the number of their commit in their name. A commit is made when its record is there, so files of a
later number belong to a commit that never was. Where the writer has named its files before it made them (`intents.py`),
these names are looked at; else those of all files.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from viewkeeper.clock import now
from viewkeeper.lake.log.catalog import CATALOG, VIEWS, Catalogs
from viewkeeper.lake.log.commit_log import HOME, CommitLog
from viewkeeper.lake.log.intents import LARGE, Left
from viewkeeper.lake.log.pins import PINS
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.store import TEMPORARY, LocalStore, damaged_file, missing_file
from viewkeeper.lake.tables.delta_log import LOG
from viewkeeper.lake.tables.delta_table import list_files, newest_version, restore_table
from viewkeeper.lake.tables.parquet_files import STAGING, commit_of
from viewkeeper.lake.tables.rewritten import CHANGES

_CATALOG = re.compile(rf"{CATALOG}/(\d{{20}})\.json")
_STAGED_BY_DELTALAKE = re.compile(r"/_delta_log/[^/]+#\d+$")


def recover(
    store: LocalStore,
    last: Record,
    catalogs: Catalogs,
    log: CommitLog,
    writer: str,
    staging: Iterable[str] | None = (),
    left: Left | None = None,
) -> Record:
    """Make tables and files what the last record says; the last record afterwards. None instead of the folders that are
    being written: there is nothing to sweep. `left` is what a writer may have left; None: anything."""
    versions = _restore_tables(store, last, catalogs)
    if staging is not None:
        sweep_leftovers(store, last.commit, staging, left)
    if not versions:
        return last
    # The tables are one version further on, with the content that they had. Besides saying so, the new record makes
    # sure that whoever left them behind can no longer commit.
    record = replace(
        last,
        commit=last.commit + 1,
        time=now().isoformat(),
        writer=writer,
        tables={
            name: replace(table.untouched(), version=versions.get(name, table.version))
            for name, table in last.tables.items()
        },
        groups={name: group.untouched() for name, group in last.groups.items()},
        metrics={"recovered": sorted(versions)},
    )
    log.append(record)
    return record


def _restore_tables(store: LocalStore, last: Record, catalogs: Catalogs) -> dict[str, int]:
    restored = {}
    for view, definition in catalogs.read(last.catalog).items():
        version = last.tables[view].version
        following = f"{definition.folder}/_delta_log/{version + 1:020d}.json"
        if not store.exists(following):
            if not store.exists(f"{definition.folder}/_delta_log"):
                raise missing_file(store.path(f"{definition.folder}/_delta_log"))
            continue
        newest = newest_version(store, definition.folder)
        assert newest is not None
        before = list_files(store, definition.folder, version)[1]
        if list_files(store, definition.folder, newest)[1] != before:
            restore_table(store, definition.folder, version, last.commit + 1)
            newest += 1
        restored[view] = newest
    return restored


def sweep_leftovers(store: LocalStore, last: int, staging: Iterable[str] = (), left: Left | None = None) -> int:
    """Delete what commits after `last`, which never came to be, have left; the number of files. What is still being
    written, in the folders `staging`, stays."""
    swept = 0
    for file in list(_all_names(store) if left is None else _names_left(store, left)):
        # Readers write their pins whenever they like.
        if any(f"/{name}/" in file for name in staging) or file.startswith(f"{PINS}/"):
            continue
        catalog = _CATALOG.fullmatch(file)
        if (
            file.rpartition("/")[2].startswith(TEMPORARY)
            or _STAGED_BY_DELTALAKE.search(file)
            or file.startswith(f"{STAGING}/")
            or (int(catalog[1]) if catalog else commit_of(file)) > last
        ):
            store.delete(file)
            swept += 1
    swept += _sweep_unborn_tables(store, last)
    store.remove_empty_folders(STAGING, staging)
    if left is None:
        for folder in (VIEWS, f"{HOME}/{CHANGES}"):
            store.remove_empty_folders(folder)
    else:
        for name in left.names:
            # Spark makes folders within the one that it was to write into.
            store.remove_empty_folders(name)
        store.remove_if_empty(_folders_left(left))
    return swept


def _all_names(store: LocalStore) -> Iterator[str]:
    for folder in (VIEWS, HOME):
        yield from store.names_below(folder)


def _names_left(store: LocalStore, left: Left) -> Iterator[str]:
    """The files that a writer has named, and all in folders that do not grow with the commits. Of a Delta log only the
    newest entries are in place."""
    for name in left.names:
        yield from store.names_below(name) if store.path(name).is_dir() else (name,)
    yield from store.names_below(HOME, LARGE)
    for table in store.names(VIEWS):
        yield from (f"{VIEWS}/{table}/{LOG}/{name}" for name in store.names(f"{VIEWS}/{table}/{LOG}"))


def _folders_left(left: Left) -> set[str]:
    """The folders that may have been made for files that a writer has named."""
    folders = {name.rpartition("/")[0] for name in left.names}
    tables = {"/".join(name.split("/")[:2]) for name in left.names if name.startswith(f"{VIEWS}/")}
    # One that Spark was to write into has the name itself; deltalake makes that of the log.
    return folders | set(left.names) | {f"{table}/{LOG}" for table in tables}


def _sweep_unborn_tables(store: LocalStore, last: int) -> int:
    """Tables that were created by a commit that never was."""
    swept = 0
    for folder in store.names(VIEWS):
        first = f"{VIEWS}/{folder}/_delta_log/{0:020d}.json"
        if store.exists(first) and created_by(store, first) > last:
            for file in list(store.files(f"{VIEWS}/{folder}")):
                store.delete(file.name)
                swept += 1
            store.remove_empty_folders(f"{VIEWS}/{folder}")
    return swept


def created_by(store: LocalStore, first: str) -> int:
    """The commit that created a table, from the first version in its Delta log."""
    try:
        actions = [json.loads(line) for line in store.read(first).splitlines()]
        told = [action["commitInfo"].get("viewkeeper.commit") for action in actions if "commitInfo" in action]
        return int(told[0] or 0) if told else 0
    except (ValueError, TypeError, AttributeError) as error:
        raise damaged_file(store.path(first), error) from error
