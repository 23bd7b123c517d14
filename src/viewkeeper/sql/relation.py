"""A base relation as a source declares it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Relation:
    """`source.table` with its columns, their SQL types and, if the source declares one, its key."""

    name: str
    source: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...] | None = None
    gone: tuple[str, ...] = ()
    """columns that rows still have a place for, and the source no longer has: they cannot be named, and are NULL"""

    @property
    def there(self) -> tuple[str, ...]:
        """The columns that can be named."""
        return tuple(column for column in self.columns if column not in self.gone) if self.gone else self.columns

    def key_of(self, row: tuple[object, ...]) -> tuple[object, ...]:
        """The key values of a row; only for a relation with a key."""
        assert self.key is not None, f"{self.name} has no key"
        return tuple(row[self.columns.index(column)] for column in self.key)


Catalog = Mapping[str, Relation]
