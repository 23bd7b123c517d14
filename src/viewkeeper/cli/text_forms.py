"""Rows of exact text as CSV and as JSON, line by line."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from viewkeeper.errors import UsageError

if TYPE_CHECKING:
    from viewkeeper.serving.query_results import TextRows

NUMERIC = ("number", "decimal")

_NEEDS_QUOTES = re.compile(r'[",\r\n]|^$')
_JSON_NUMBER = re.compile(r"-?\d+(\.\d+)?(E-?\d+)?")


def csv_lines(found: "TextRows") -> Iterator[str]:
    """A line of headings, then a line per row. NULL is nothing at all, an empty text is two quotes."""
    yield _csv_line([name for name, _ in found.columns])
    for row in found.rows:
        yield _csv_line(row)


def _csv_line(cells: "list[str] | tuple[str | None, ...]") -> str:
    return ",".join("" if cell is None else _csv_cell(cell) for cell in cells) + "\n"


def _csv_cell(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _NEEDS_QUOTES.search(cell) else cell


def json_lines(found: "TextRows") -> Iterator[str]:
    """One array, an object per row, each on its own line."""
    names = [name for name, _ in found.columns]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two columns are named {twice[0]!r}, which a JSON object cannot have", "rename one with AS")
    kinds = [(json.dumps(name, ensure_ascii=False), kind) for name, kind in found.columns]
    between = "[\n"
    for row in found.rows:
        members = (f"{name}: {_json_value(kind, text)}" for (name, kind), text in zip(kinds, row, strict=True))
        yield f"{between}{{{', '.join(members)}}}"
        between = ",\n"
    yield "\n]\n" if between == ",\n" else "[]\n"


def _json_value(kind: str, text: str | None) -> str:
    if text is None:
        return "null"
    # JSON has no infinity and no NaN; and most readers take a number with many digits for the nearest double.
    plain = kind in ("boolean", "json") or (kind == "number" and _JSON_NUMBER.fullmatch(text))
    return text if plain else json.dumps(text, ensure_ascii=False)
