"""The tables of a folder: where each is, its columns, its key.

Columns come from what was registered, else from `schema=` in the URL, else from the files: Parquet says them, CSV and
JSON are looked through once. From then on they are fixed, and a file that does not fit is a disruption.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from viewkeeper.errors import BadSourceUrl, SourceUnfit, UnknownTable, UnsupportedType
from viewkeeper.sources.base import GLOBAL_TX, Request
from viewkeeper.sources.files.folder import Folder, Found, Place, unreadable
from viewkeeper.sources.files.formats import ENDINGS, Format, column_names, seen_schema, unified
from viewkeeper.sources.lake.column_types import Misfit, arrow_type, known_type, spark_type
from viewkeeper.sources.lake.names import check_column_names
from viewkeeper.sources.lake.options import (
    checked_key,
    declared_keys,
    folder_and_options,
    refuse_others,
    seconds,
)
from viewkeeper.sources.layout import widens
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.type_families import DIALECT, type_name

POLL, QUIET = 1.0, 0.25
"""Seconds between two looks at the folder, and for which nothing may have changed before it is copied."""

_OPTIONS = ("delimiter", "format", "key", "poll", "quiet", "schema")
_GLOBAL_COLUMNS = ("gid", "source", "participants")

Columns = tuple[tuple[str, str], ...]
"""Names with their Spark types."""


@dataclass(frozen=True)
class Settings:
    """What the URL says: `files:///dir?format=csv&key=orders.id&schema.orders=id BIGINT, item STRING&poll=2s`."""

    root: Path
    format: str | None
    delimiter: str
    poll: float
    quiet: float
    key: str
    schemas: Mapping[str, str]
    """by table; '' is for the only one"""

    @classmethod
    def of(cls, url: str) -> "Settings":
        root, options = folder_and_options(url, "files")
        refuse_others(options, _OPTIONS)
        format = options.get("format")
        if format is not None and format not in ENDINGS:
            raise BadSourceUrl(f"there is no format {format}", f"formats are {', '.join(ENDINGS)}")
        delimiter = options.get("delimiter", ",")
        if len(delimiter) != 1 or not delimiter.isascii():
            raise BadSourceUrl(f"delimiter={delimiter} is not one character", "write for example delimiter=%3B for ;")
        schemas = {name.partition(".")[2]: text for name, text in options.items() if name.partition(".")[0] == "schema"}
        poll = seconds("poll", options["poll"]) if "poll" in options else POLL
        quiet = seconds("quiet", options["quiet"]) if "quiet" in options else QUIET
        return cls(root, format, delimiter, poll, quiet, options.get("key", ""), schemas)


@dataclass(frozen=True)
class Table:
    """One table of the folder."""

    place: Place
    format: Format
    relation: Relation
    guessed: bool
    """whether its types are what the files looked like"""

    @cached_property
    def schema(self) -> pa.Schema:
        columns = zip(self.relation.columns, self.relation.types, strict=True)
        return pa.schema([(name, arrow_type(type)) for name, type in columns])

    def as_registered(self) -> dict[str, Any]:
        """What is kept of it."""
        return {
            "entry": self.place.entry,
            "format": self.place.format,
            "guessed": self.guessed,
            "columns": [list(pair) for pair in zip(self.relation.columns, self.relation.types, strict=True)],
        }


def tables_of(request: Request, settings: Settings, registered: Mapping[str, Any]) -> dict[str, Table]:
    """The tables that were asked for, and `global_tx` if there is one."""
    folder = Folder(settings.root, settings.format)
    found = folder.find()
    places = dict(found.places) | {
        name: Place(name, told["entry"], told["format"]) for name, told in registered.items()
    }
    for name in settings.schemas:
        # An empty folder tells nothing, but the URL does.
        if name and name not in places and (settings.root / name).is_dir():
            places[name] = Place(name, name, settings.format or "parquet")
    names = [name for name in places if name != GLOBAL_TX] if request.tables is None else list(request.tables)
    if request.registered:
        names = [name for name in names if name in places]
    for name in names:
        if name not in places:
            raise _unknown(name, request, places, found)
    if not names:
        raise SourceUnfit(
            f"{settings.root} holds no table: {'; '.join(found.ignored[:5]) or 'it is empty'}",
            f"put files there that end in {', '.join(ending for all in ENDINGS.values() for ending in all)}",
        )
    keys = declared_keys(request, settings.key, names)
    if "" in settings.schemas and len(names) > 1:
        raise BadSourceUrl("schema= does not say which table it is of", f"write schema.{names[0]}=...")
    tables = {}
    for name in [*names, *([GLOBAL_TX] if GLOBAL_TX in places and GLOBAL_TX not in names else [])]:
        layout = request.layout.get(f"{request.name}.{name}")
        with request.may_refuse(name):
            columns, guessed = _columns(name, places[name], folder, settings, registered, layout)
            tables[name] = _table(request.name, places[name], settings, columns, keys.get(name), guessed)
    return tables


def _table(
    source: str, place: Place, settings: Settings, columns: Columns, key: tuple[str, ...] | None, guessed: bool
) -> Table:
    names = [name for name, _ in columns]
    check_column_names(place.table, names)
    if place.table == GLOBAL_TX:
        if set(names) != set(_GLOBAL_COLUMNS):
            raise SourceUnfit(
                f"{GLOBAL_TX} has the columns {', '.join(names)}", f"it needs {', '.join(_GLOBAL_COLUMNS)}"
            )
        columns = tuple(sorted(columns, key=lambda column: _GLOBAL_COLUMNS.index(column[0])))
        names = list(_GLOBAL_COLUMNS)
    relation = Relation(
        f"{source}.{place.table}",
        source,
        tuple(names),
        tuple(type for _, type in columns),
        checked_key(place.table, names, key),
    )
    return Table(place, Format(place.format, settings.delimiter), relation, guessed)


def _columns(
    name: str,
    place: Place,
    folder: Folder,
    settings: Settings,
    registered: Mapping[str, Any],
    layout: Relation | None,
) -> tuple[Columns, bool]:
    """The columns of a table, and whether they are guessed."""
    if layout is not None:
        columns = tuple(zip(layout.columns, layout.types, strict=True))
        return columns, bool(registered.get(name, {"guessed": False})["guessed"])
    told = settings.schemas.get(name, settings.schemas.get(""))
    declared = _declared(name, told) if told else None
    if name in registered:
        kept = tuple((column, type) for column, type in registered[name]["columns"])
        if declared is not None and declared != kept:
            raise SourceUnfit(
                f"the schema of {name} is {_written(declared)}, and it was registered as {_written(kept)}",
                "remove the source and add it again",
            )
        return kept, bool(registered[name]["guessed"])
    return (declared, False) if declared is not None else (_seen(name, place, folder, settings), True)


def _seen(name: str, place: Place, folder: Folder, settings: Settings) -> Columns:
    format, schemas = Format(place.format, settings.delimiter), []
    for file in folder.look({name: place}).get(name, {}):
        try:
            schemas.append(seen_schema(folder.path(file), format))
        except Misfit as error:
            raise SourceUnfit(f"{name}: {file} cannot be read: {error}", "fix the file, or leave it out") from error
        except OSError as error:
            raise unreadable(folder.path(file), error) from error
        # One that has a name twice; what is made of several files has each once.
        check_column_names(f"{name} ({file})", schemas[-1].names or ["-"])
    schema = schemas[0] if place.format == "parquet" and schemas else unified(schemas)
    if not schema.names:
        raise SourceUnfit(f"{name}: no file has its columns", f"write schema.{name}=column TYPE, ... in the URL")
    return tuple((field.name, spark_type(name, field.name, field.type)) for field in schema)


def found_relation(table: Table, folder: Folder, lost: Collection[str]) -> Relation:
    """A table with the columns that its files have now: without those that are lost, with wider types and new columns
    where a file has them. One that cannot be read, or is of a type that cannot be kept, adds none."""
    relation = table.relation
    columns = {name: type for name, type in zip(relation.columns, relation.types, strict=True) if name not in lost}
    for file in folder.look({table.place.table: table.place}).get(table.place.table, {}):
        try:
            names = column_names(folder.path(file), table.format)
            if table.place.format != "parquet" and set(names) <= {*columns, *lost}:
                continue
            for field in seen_schema(folder.path(file), table.format):
                type = spark_type(relation.name, field.name, field.type)
                before = columns.get(field.name)
                if field.name in lost or not field.name or field.name.casefold().startswith("_vk_"):
                    continue
                if before is None or (table.place.format == "parquet" and widens(before, type)):
                    columns[field.name] = type
        except (Misfit, UnsupportedType, OSError):
            continue
    return Relation(relation.name, relation.source, tuple(columns), tuple(columns.values()), relation.key)


def _declared(name: str, text: str) -> Columns:
    """`id BIGINT, item STRING`, as in CREATE TABLE."""
    hint = "write it as in CREATE TABLE: id BIGINT, item STRING, price DECIMAL(10, 2)"
    try:
        parsed = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect=DIALECT)
    except sqlglot.ParseError as error:
        raise BadSourceUrl(f"the schema of {name} cannot be read: {text}", hint) from error
    columns = list(parsed.this.expressions) if isinstance(parsed.this, exp.Schema) else []
    if not columns or not all(isinstance(column, exp.ColumnDef) and column.kind for column in columns):
        raise BadSourceUrl(f"the schema of {name} cannot be read: {text}", hint)
    return tuple((column.name, known_type(name, column.name, type_name(column.kind))) for column in columns)


def _written(columns: Columns) -> str:
    return ", ".join(f"{name} {type}" for name, type in columns)


def _unknown(name: str, request: Request, places: Mapping[str, Place], found: Found) -> UnknownTable:
    why = next((f": {told}" for told in found.ignored if told.startswith(name)), "")
    return UnknownTable(f"{request.name} has no table {name}{why}", f"it has {', '.join(places) or 'none'}")
