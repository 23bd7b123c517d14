"""Whether the files that committed states need are what was written, byte by byte.

    a data file                        the CRC-32 of its bytes is the one in its name
    an entry of a Delta log            ... is the one in the record of the commit that wrote it
    a record, a catalog, a source      the text is the one that its own checksum was made for
    the list of files of a table       says of each file what that says of itself: bytes, rows, states

Nothing is locked: commits may be made meanwhile, and what a vacuum takes away meanwhile is not missed.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from viewkeeper.errors import DamagedWarehouse, WarehouseError
from viewkeeper.lake.log.catalog import CATALOG, Catalogs, Definition, catalog_name
from viewkeeper.lake.log.commit_log import CHECKPOINT, COMMITS, FORMAT_FILE, HOME, CommitLog, read_format, record_name
from viewkeeper.lake.log.record import Record, TableState, seal, unseal
from viewkeeper.lake.log.source_files import SOURCES
from viewkeeper.lake.log.store import TEMPORARY, LocalStore
from viewkeeper.lake.tables.delta_log import stored_entry
from viewkeeper.lake.tables.delta_table import DataFile, describe_file
from viewkeeper.lake.tables.file_lists import Tables
from viewkeeper.lake.tables.parquet_files import checksum_in, checksum_of, open_parquet

_SEALED = (COMMITS, CATALOG, SOURCES)
"""folders of files that hold their own checksums"""
Check = Callable[[], str | None]
"""what is wrong with a file, if anything"""


@dataclass(frozen=True)
class FileAudit:
    """What was found: how many files were read, which of them are not what was written and why, and how many have no
    checksum, because an earlier viewkeeper wrote them, and could only be read."""

    files: int
    wrong: Mapping[str, str]
    without_checksum: int

    @property
    def clean(self) -> bool:
        return not self.wrong


def audit_files(store: LocalStore) -> FileAudit:
    """Read every file that a committed state needs."""
    checks = dict(_checks(store))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(checks, pool.map(lambda check: check(), checks.values()), strict=True))
    wrong = {name: why for name, why in found.items() if why is not None}
    if wrong:
        still_needed = dict(_checks(store))
        wrong = {name: why for name, why in wrong.items() if name in still_needed}
    old = [name for name in checks if name.endswith(".parquet") and checksum_in(name) is None]
    return FileAudit(len(checks), dict(sorted(wrong.items())), len(old))


def _checks(store: LocalStore) -> Iterator[tuple[str, Check]]:
    names = [f"{folder}/{name}" for folder in _SEALED for name in store.names(folder) if name.endswith(".json")]
    yield FORMAT_FILE, partial(_format, store)
    for name in (*names, *([CHECKPOINT] if store.exists(CHECKPOINT) else ())):
        if not name.rpartition("/")[2].startswith(TEMPORARY):
            yield name, partial(_sealed, store, name)
    try:
        yield from _of_tables(store)
    except WarehouseError as error:
        # Without the last record, or its catalog, nothing says which files there should be.
        yield f"{HOME}/", partial(_always, error.detail)


def _of_tables(store: LocalStore) -> Iterator[tuple[str, Check]]:
    log, catalogs, tables = CommitLog(store), Catalogs(store), Tables(store)
    last, records = log.last(), []
    for number in log.numbers():
        yield record_name(number), partial(_sealed, store, record_name(number))
        with suppress(DamagedWarehouse):  # the check of the record says so
            records.append(record := log.record(number))
            yield catalog_name(record.catalog), partial(_sealed, store, catalog_name(record.catalog))
    for view in catalogs.read(last.catalog).values():
        kept = max(last.tables[view.name].kept, view.created)
        first = True
        for record in (record for record in records if record.commit >= kept):
            if (table := record.tables.get(view.name)) is None:
                continue
            if first or record.commit == last.commit:
                yield from _listed(store, tables, view.at(record.commit), table, record)
                first = False
            yield from _of_commit(store, view.at(record.commit), table)


def _listed(
    store: LocalStore, tables: Tables, view: Definition, table: TableState, record: Record
) -> Iterator[tuple[str, Check]]:
    """The files of one version, as the Delta log lists them."""
    log = f"{view.folder}/_delta_log"
    try:
        listed = tables.files(view, table)
    except (WarehouseError, ValueError, TypeError, KeyError) as error:
        why = error.detail if isinstance(error, WarehouseError) else f"{type(error).__name__}: {error}"
        yield f"{log} of commit {record.commit}", partial(_always, why)
        return
    for file in listed:
        yield f"{view.folder}/{file.name}", partial(_data, store, f"{view.folder}/{file.name}")
    yield f"{log} of commit {record.commit}", partial(_list, store, view.folder, listed)


def _of_commit(store: LocalStore, view: Definition, table: TableState) -> Iterator[tuple[str, Check]]:
    """What one commit has written for a table."""
    names = [f"{view.folder}/{file}" for file in table.added]
    for name in [*names, f"{HOME}/{table.changes}"] if table.changes else names:
        yield name, partial(_data, store, name)
    if table.log is not None:
        entry = stored_entry(store, view.folder, table.version)
        yield entry, partial(_bytes, store, entry, int(table.log, 16))


# --- what is wrong with a file ---


def _sealed(store: LocalStore, name: str) -> str | None:
    try:
        content = store.read(name)
        body = unseal(content)
    except DamagedWarehouse as error:
        return error.detail
    except ValueError as error:
        return str(error)
    return None if seal(body) == content else _CHANGED


def _format(store: LocalStore) -> str | None:
    """Earlier versions gave it no checksum."""
    try:
        read_format(store)
        without = json.loads(store.read(FORMAT_FILE)).keys() == {"format", "id"}
    except (WarehouseError, ValueError) as error:
        return str(error).splitlines()[0]
    return None if without else _sealed(store, FORMAT_FILE)


def _data(store: LocalStore, name: str) -> str | None:
    checksum = checksum_in(name)
    if checksum is not None:
        return _bytes(store, name, checksum)
    try:
        open_parquet(store.path(name)).read()
    except FileNotFoundError:
        return _MISSING
    except (pa.ArrowException, OSError, ValueError) as error:
        return str(error)
    return None


def _bytes(store: LocalStore, name: str, checksum: int) -> str | None:
    try:
        return None if checksum_of(store.path(name)) == checksum else _CHANGED
    except FileNotFoundError:
        return _MISSING
    except OSError as error:
        return error.strerror


def _list(store: LocalStore, folder: str, listed: tuple[DataFile, ...]) -> str | None:
    for file in listed:
        try:
            if describe_file(store, folder, file.name)[0] != file:
                return f"what it says of {file.name} is not so"
        except (WarehouseError, pa.ArrowException, OSError, ValueError):
            continue  # the check of the file says so
    return None


def _always(why: str) -> str | None:
    return why


_MISSING = "it is missing"
_CHANGED = "its content is not what was written"
