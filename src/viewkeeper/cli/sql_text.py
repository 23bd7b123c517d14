"""SQL from the command line: an argument, a file, or standard input."""

import sys
from pathlib import Path

from viewkeeper.errors import UsageError


def sql_text(sql: str | None, file: str | None, what: str) -> str:
    """The text of a query or a view, whichever way it was given."""
    if (sql is None) == (file is None):
        raise UsageError(
            f"there is no {what}" if sql is None else f"there is one {what} too many: an argument and --file",
            "give one: as an argument, as - for standard input, or with --file",
        )
    if sql == "-":
        return _decoded(sys.stdin.buffer.read(), "standard input", what)
    if file is None:
        return sql or ""
    try:
        return _decoded(Path(file).read_bytes(), file, what)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", f"name a file with the {what}") from error


def _decoded(content: bytes, place: str, what: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{place} is not UTF-8 text", f"give the {what} as text") from error
