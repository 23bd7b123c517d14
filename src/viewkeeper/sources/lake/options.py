"""The options of a URL that names a folder: `files:///dir?key=orders.id&poll=2s`."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from viewkeeper.errors import BadSourceUrl
from viewkeeper.sources.base import Request
from viewkeeper.sources.urls import shown

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|min|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, None: 1.0}


def folder_and_options(url: str, scheme: str) -> tuple[Path, dict[str, str]]:
    """The folder of a URL, and its options; none may be there twice."""
    parts = urlsplit(url)
    example = f"write {scheme}:///path/to/folder"
    if parts.scheme != scheme or parts.netloc or not parts.path.startswith("/"):
        raise BadSourceUrl(f"{shown(url)} names no folder of this machine", example)
    folder = Path(unquote(parts.path))
    if "\0" in str(folder) or folder == Path("/"):
        raise BadSourceUrl(f"{shown(url)} names no folder that could hold tables", example)
    options: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in options:
            raise BadSourceUrl(f"the option {name} is there twice in {shown(url)}", "give it once")
        options[name] = value
    return folder, options


def refuse_others(options: Mapping[str, str], known: Collection[str]) -> None:
    """BadSourceUrl for an option that means nothing."""
    for name in options:
        if name.partition(".")[0] not in known:
            raise BadSourceUrl(f"there is no option {name}", f"options are {', '.join(sorted(known))}")


def seconds(option: str, text: str) -> float:
    """A duration: 2s, 250ms, 1m; without a unit it is in seconds."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise BadSourceUrl(f"{option}={text} is no duration", "write for example 2s or 250ms")
    return float(found[1]) * _SECONDS[found[2]]


def declared_keys(request: Request, option: str, tables: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The key of each table: `id` where there is one table, `orders.id,people.id`; those of the request come first."""
    keys: dict[str, list[str]] = {}
    for entry in (part.strip() for part in option.split(",")) if option.strip() else ():
        table = max((name for name in tables if entry.startswith(f"{name}.")), key=len, default="")
        if not table and len(tables) == 1:
            keys.setdefault(tables[0], []).append(entry)
        elif not table:
            raise BadSourceUrl(
                f"key={option}: {entry} does not say which table it is of",
                f"write table.column; the tables are {', '.join(tables)}",
            )
        else:
            keys.setdefault(table, []).append(entry[len(table) + 1 :])
    for table in request.keys:
        if table not in tables:
            raise BadSourceUrl(f"there is a key for {table}, which is no table of {request.name}", ", ".join(tables))
    return {table: tuple(columns) for table, columns in keys.items()} | dict(request.keys)


def checked_key(table: str, columns: Sequence[str], key: Sequence[str] | None) -> tuple[str, ...] | None:
    """A key whose columns are there."""
    for column in key or ():
        if column not in columns:
            raise BadSourceUrl(
                f"the key of {table} names {column}, which is no column of it", f"it has {', '.join(columns)}"
            )
    return tuple(key) if key else None
