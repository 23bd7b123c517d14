"""Names of columns that cannot be distinguished, or that are viewkeeper's own."""

from collections.abc import Sequence

from viewkeeper.errors import SourceUnfit

_RESERVED = "_vk_"


def check_column_names(table: str, columns: Sequence[str]) -> None:
    """SourceUnfit unless every column has a name of its own, to Spark too."""
    if not columns:
        raise SourceUnfit(f"{table} has no columns", "leave it out with tables=")
    seen: dict[str, str] = {}
    for column in columns:
        if not column or column.casefold().startswith(_RESERVED):
            raise SourceUnfit(f"{table} has a column named {column!r}", f"rename it: {_RESERVED} is reserved")
        if (other := seen.get(column.casefold())) is not None:
            raise SourceUnfit(
                f"{table} has the columns {other!r} and {column!r}, which are one name to Spark", "rename one of them"
            )
        seen[column.casefold()] = column
