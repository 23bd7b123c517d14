"""Whether a declared key is one: no two rows share it, and none of its columns is NULL."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.zset import Row
from viewkeeper.sources.lake.column_types import python_values
from viewkeeper.sources.lake.content import Content
from viewkeeper.sources.lake.fetching import among
from viewkeeper.sources.lake.workshop import Workshop


def violation(content: Content, workshop: Workshop, of: Iterable[Row] | None = None) -> str | None:
    """What is wrong with the key; with `of`, only these keys can have become so."""
    key = content.relation.key
    if key is None:
        return None
    keys = None if of is None else list(dict.fromkeys(of))
    if keys is not None and any(value is None for row in keys for value in row):
        return f"a row has no value in its key ({', '.join(key)})"
    large = keys is None and content.count() > workshop.on_driver
    nulls, twice = _on_spark(content, key, workshop) if large else _in_arrow(content, key, keys)
    if nulls:
        return f"a row has no value in its key ({', '.join(key)})"
    if twice is not None:
        return f"two rows have the key {', '.join(f'{n} = {v!r}' for n, v in zip(key, twice, strict=True))}"
    return None


def _in_arrow(content: Content, key: Sequence[str], keys: list[Row] | None) -> tuple[bool, Row | None]:
    fields = pa.schema([content.schema.field(column) for column in key])
    wanted = {} if keys is None else among(content, key, keys)
    table = pa.Table.from_batches([batch.cast(fields) for batch in content.batches(key, wanted)], schema=fields)
    if any(table[column].null_count for column in key):
        return True, None
    counted = table.group_by(list(key)).aggregate([([], "count_all")])
    found = counted.filter(pc.greater(counted["count_all"], 1)).slice(0, 1)
    if not found.num_rows:
        return False, None
    return False, tuple(python_values(found[column])[0] for column in key)


def _on_spark(content: Content, key: Sequence[str], workshop: Workshop) -> tuple[bool, Row | None]:
    from viewkeeper.sources.lake.on_spark import repeated_key_on_spark

    for batch in content.batches(key):
        if any(batch[column].null_count for column in key):
            return True, None
    return False, repeated_key_on_spark(content, key, workshop)
