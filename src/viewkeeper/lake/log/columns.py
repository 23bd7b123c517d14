"""The columns of a stored view: their Spark types, and the same in Arrow.

Parquet, Delta, Spark and Arrow agree on these types exactly; anything else is refused by name when a view is created.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from viewkeeper.errors import BadDelta, DefinitionError
from viewkeeper.sql.type_families import Family, SqlType, parse_type, sql_type, type_named

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RESERVED = "_vk_"
"""how names begin that are viewkeeper's own"""
HIDDEN = RESERVED
"""how hidden columns begin: they are stored with the rows of a view, and not shown; hidden views too"""
WEIGHT = "_vk_weight"
STATE = "_vk_state"
HASH = "_vk_hash"
"""in the base of a large view: see `row_hash.py`"""
NET, SIDE = "_vk_net", "_vk_side_"
"""beside the columns of a view while its net change is joined to it: see `reading.py`"""

Columns = tuple[tuple[str, str], ...]
"""Names with their Spark types, in order."""

# Other writers of Delta refuse these in the name of a column. Tables of viewkeeper's own are read by nothing else, and
# have the columns of sources under their names, whatever these are.
_FORBIDDEN = frozenset(" ,;{}()\n\t=")


def checked_columns(
    view: str, columns: Mapping[str, str] | Sequence[tuple[str, str]], hidden: Mapping[str, str] | None = None
) -> Columns:
    """The columns with their types as Spark writes them, hidden ones last; DefinitionError for what is not storable."""
    shown = list(columns.items()) if isinstance(columns, Mapping) else list(columns)
    hidden = hidden or {}
    if not shown and not hidden:
        raise DefinitionError(f"view {view} has no columns", "give it at least one")
    for name, _ in shown:
        _refuse_bad_name(view, name)
    for name in hidden:
        _refuse_bad_hidden_name(view, name)
    seen: dict[str, str] = {}
    checked = []
    for name, type in (*shown, *hidden.items()):
        if (other := seen.get(name.casefold())) is not None:
            raise DefinitionError(
                f"view {view} has the columns {other!r} and {name!r}, which are one name to Spark", "rename one with AS"
            )
        seen[name.casefold()] = name
        checked.append((name, _storable(view, name, type).name))
    return tuple(checked)


def _refuse_bad_name(view: str, name: str) -> None:
    forbidden = frozenset() if view.startswith(RESERVED) else _FORBIDDEN
    if name.casefold().startswith(RESERVED) or not name or set(name) & forbidden:
        raise DefinitionError(
            f"view {view}: a column cannot be named {name!r}",
            f"use AS: names that begin with {RESERVED} are reserved, and Delta allows none of ' ,;{{}}()=' in them",
        )


def _refuse_bad_hidden_name(view: str, name: str) -> None:
    used = (WEIGHT, STATE, HASH, NET)
    if not name.startswith(HIDDEN) or name.casefold() in used or name.casefold().startswith(SIDE):
        raise DefinitionError(
            f"view {view}: a hidden column cannot be named {name!r}",
            f"begin it with {HIDDEN}; {', '.join(used)} and names that begin with {SIDE} are taken",
        )


def _storable(view: str, column: str, type: str) -> SqlType:
    known = sql_type(parse_type(type))
    if known.family in (Family.NULL, Family.UNKNOWN, Family.OTHER):
        raise DefinitionError(
            f"view {view}: column {column} has the type {type or 'unknown'!s}, which cannot be stored",
            "CAST it to one of BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, DECIMAL, FLOAT, DOUBLE, STRING, BINARY, DATE, "
            "TIMESTAMP, TIMESTAMP_NTZ",
        )
    return known


def arrow_type(type: str) -> Any:
    """The Arrow type of a Spark type."""
    from viewkeeper.algebra import arrow_types

    return arrow_types.arrow_type(type_named(type))


@lru_cache(maxsize=1024)
def arrow_schema(columns: Columns, *, signed: bool) -> Any:
    """The Arrow schema of a view's rows; signed rows also carry weight and state."""
    import pyarrow as pa

    fields = [pa.field(name, arrow_type(type)) for name, type in columns]
    if signed:
        fields += [pa.field(WEIGHT, pa.int64(), nullable=False), pa.field(STATE, pa.int64(), nullable=False)]
    return pa.schema(fields)


def table_schema(columns: Columns) -> Any:
    """The Arrow schema of the Delta table of a large view."""
    import pyarrow as pa

    return arrow_schema(columns, signed=True).append(pa.field(HASH, pa.int64()))


@lru_cache(maxsize=1024)
def spark_schema(columns: Columns, *, signed: bool, hashed: bool = False) -> "StructType":
    """The Spark schema of a view's rows; signed rows also carry weight and state, those of a base a hash too."""
    from viewkeeper.algebra.pyspark_names import LongType, StructField, StructType, _parse_datatype_string

    fields = [StructField(name, _parse_datatype_string(type)) for name, type in columns]
    if signed:
        fields += [StructField(WEIGHT, LongType()), StructField(STATE, LongType())]
    if hashed:
        fields.append(StructField(HASH, LongType()))
    return StructType(fields)


def columns_of(schema: "StructType") -> Columns:
    """The columns of a DataFrame, without weight and state."""
    return tuple(
        (field.name, field.dataType.simpleString().upper()) for field in schema if field.name not in (WEIGHT, STATE)
    )


def check_names(view: str, columns: Columns, given: Sequence[str]) -> None:
    """BadDelta unless these are the columns of the view, in its order."""
    wanted = [name for name, _ in columns]
    if list(given) != wanted:
        raise BadDelta(
            f"a change of {view} has the columns {', '.join(given) or 'none'}", f"the view has {', '.join(wanted)}"
        )
