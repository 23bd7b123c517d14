"""What is known of each view: columns, group, layout, folder.

Definitions change seldom, so a record does not repeat them: it names the commit that last changed them, whose catalog
is `_viewkeeper/catalog/%020d.json`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from viewkeeper.errors import DamagedWarehouse, DefinitionError, UnknownView, did_you_mean
from viewkeeper.lake.log.columns import HIDDEN, Columns
from viewkeeper.lake.log.commit_log import HOME, overtaken
from viewkeeper.lake.log.record import FORMAT, seal, unseal
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.sql.stored_text import stored_expression, stored_type

CATALOG = f"{HOME}/catalog"
VIEWS = "views"
LONGEST_FOLDER = 100
"""File systems allow some 255 bytes in a name."""
SHOWN, HAVING = "shown", "having"
"""properties of a view whose readers see other columns than are stored, or not all rows"""
COMPUTED = "computed"
"""property of a view whose own table stays empty: the hidden tables that its rows are computed from"""
SORTED_BY = "sorted_by"
"""a property of a table that is looked up by some columns"""
FAMILY, PADDED = "family", "padded"
"""properties of a view that is read together with others, as one: a part of a CUBE, a ROLLUP or GROUPING SETS"""


class Layout(StrEnum):
    """How the table of a view is kept."""

    APPENDED = "appended"
    """a compacted base, and signed deltas appended to it: for large views"""
    REWRITTEN = "rewritten"
    """the rows of the last state, written again by every change: for small views, which any tool reads as they are"""


@dataclass(frozen=True)
class Computed:
    """rows ⋈ copy_0 ⋈ copy_1 ...: hidden tables of the view's own group, each a set of rows."""

    rows: str
    copies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """each with the columns that point into it, which have the same names there and in `rows`"""

    @property
    def tables(self) -> tuple[str, ...]:
        return self.rows, *(copy for copy, _ in self.copies)


@dataclass(frozen=True)
class Before:
    """Where the rows of a view were while it was rewritten: it grew, and its changes are appended since a commit."""

    folder: str
    until: int
    """the first commit in which they are in the folder of the view"""


@dataclass(frozen=True)
class Definition:
    """One view as the warehouse stores it. `properties` belong to those who created it."""

    name: str
    folder: str
    group: str
    layout: Layout
    columns: Columns
    created: int
    """the commit that created it; records before it may know another view of this name"""
    retention: float | None = None
    """seconds; None is the warehouse's own"""
    properties: Mapping[str, Any] = field(default_factory=dict)
    before: Before | None = None

    def at(self, commit: int) -> "Definition":
        """The view as it was stored in a commit."""
        if self.before is None or commit >= self.before.until:
            return self
        return replace(self, folder=self.before.folder, layout=Layout.REWRITTEN, before=None)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @property
    def shown(self) -> "Definition":
        """The view as its readers know it: with the columns that they see."""
        if self.expressions is None:
            columns = tuple(column for column in self.columns if not column[0].startswith(HIDDEN))
        else:
            columns = tuple((name, type) for name, _, type in self.expressions)
        return replace(self, columns=columns)

    @property
    def expressions(self) -> tuple[tuple[str, str, str], ...] | None:
        """Name, SQL over stored columns and type of each column that readers see; None if they see stored columns."""
        told = self.properties.get(SHOWN)
        if told is None:
            return None
        with self._checked():
            return tuple((name, stored_expression(sql), stored_type(type)) for name, sql, type in told)

    @property
    def having(self) -> str | None:
        """A condition on stored columns: readers see only the rows for which it is true."""
        told = self.properties.get(HAVING)
        if told is None:
            return None
        with self._checked():
            return stored_expression(told)

    @property
    def computed(self) -> Computed | None:
        """What its rows are computed from whenever they are read; None if they are in its own table."""
        told = self.properties.get(COMPUTED)
        return None if told is None else Computed(told["rows"], tuple((t, tuple(ids)) for t, ids in told["copies"]))

    @property
    def counted(self) -> str:
        """The table whose rows are counted as those of the view: its own, or that of the joined rows or pointers."""
        return self.name if self.computed is None else self.computed.rows

    @property
    def selects(self) -> bool:
        """Whether readers see only some of these rows: of an outer join, or behind HAVING."""
        return self.properties.get(HAVING) is not None

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """Columns by which it is looked up: its base is stored in their order, so that a lookup reads little of it."""
        return tuple(self.properties.get(SORTED_BY, ()))

    @property
    def shown_as_stored(self) -> bool:
        """Whether readers see exactly what is stored."""
        return self.expressions is None and not self.selects and self.computed is None and self.shown == self

    @property
    def hidden(self) -> bool:
        """Whether it is there for the sake of other views: readers get it by its exact name alone."""
        return self.name.startswith(HIDDEN)

    @property
    def family(self) -> str | None:
        """The name under which it is read together with others."""
        return self.properties.get(FAMILY)

    @property
    def padded(self) -> tuple[tuple[str, str], ...]:
        """Name and SQL over shown columns of each column of the family."""
        with self._checked():
            return tuple((name, stored_expression(sql)) for name, sql in self.properties.get(PADDED, ()))

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """What was read from a file may be anybody's: Spark gets only the texts that a view may have."""
        try:
            yield
        except (DefinitionError, TypeError, ValueError) as error:
            told = error.detail if isinstance(error, DefinitionError) else error
            raise DamagedWarehouse(
                f"the catalog has an expression of view {self.name} that no view may have: {told}",
                "viewkeeper did not write it: do not use this warehouse, or put it back from a backup",
            ) from error


Catalog = Mapping[str, Definition]


class Catalogs:
    """The catalogs of one warehouse, by the commit that wrote them."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self.read = lru_cache(maxsize=16)(self._read)

    def _read(self, commit: int) -> Catalog:
        name = catalog_name(commit)
        try:
            body = unseal(self._store.read(name))
            return {
                view: Definition(
                    view,
                    stored["folder"],
                    stored["group"],
                    Layout(stored["layout"]),
                    tuple((column, stored_type(type)) for column, type in stored["columns"]),
                    stored["created"],
                    stored["retention"],
                    stored["properties"],
                    Before(*stored["before"]) if "before" in stored else None,
                )
                for view, stored in body["views"].items()
            }
        except (ValueError, KeyError, TypeError, DefinitionError) as error:
            raise DamagedWarehouse(
                f"the catalog {self._store.path(name)} is damaged: {error}", "put it back from a backup"
            ) from error

    def write(self, commit: int, catalog: Catalog) -> None:
        """Write the catalog of a commit that is about to be made; WriterPresent if another writer makes it too."""
        body = {
            "format": FORMAT,
            "views": {
                name: {
                    "folder": view.folder,
                    "group": view.group,
                    "layout": view.layout.value,
                    "columns": [list(column) for column in view.columns],
                    "created": view.created,
                    "retention": view.retention,
                    "properties": dict(view.properties),
                    **({"before": [view.before.folder, view.before.until]} if view.before else {}),
                }
                for name, view in catalog.items()
            },
        }
        try:
            self._store.create_exclusive(catalog_name(commit), seal(body))
        except FileExistsError:
            raise overtaken(self._store, commit) from None

    def remove_before(self, commit: int) -> None:
        """Delete the catalogs before the one of a commit."""
        for name in self._store.names(CATALOG):
            number = name.removesuffix(".json")
            if number.isdecimal() and int(number) < commit:
                self._store.delete(f"{CATALOG}/{name}")
        self.read.cache_clear()


def catalog_name(commit: int) -> str:
    """The file of a catalog."""
    return f"{CATALOG}/{commit:020d}.json"


def families(catalog: Catalog) -> dict[str, tuple[Definition, ...]]:
    """The members of each family, in the order in which they were created; all of a family are in one group."""
    found: dict[str, tuple[Definition, ...]] = {}
    for view in catalog.values():
        if view.family is not None:
            found[view.family] = (*found.get(view.family, ()), view)
    return found


def readable(catalog: Catalog) -> tuple[str, ...]:
    """The names that readers know, sorted: of views that are not hidden, and of families."""
    return tuple(sorted({name for name, view in catalog.items() if not view.hidden} | families(catalog).keys()))


def tables_of(catalog: Catalog, view: Definition) -> tuple[Definition, ...]:
    """The tables that the rows of a view are stored in: its own, or those that it is computed from."""
    return (view,) if view.computed is None else tuple(catalog[name] for name in view.computed.tables)


def spellings(catalog: Catalog) -> dict[str, str]:
    """The names of views and families by folded case: no two differ in case alone."""
    return {name.casefold(): name for name in (*catalog, *families(catalog))}


def spelled(catalog: Catalog, view: str) -> str:
    """A name as it was written when the view was created; one that is not known stays as it is."""
    return view if view in catalog else spellings(catalog).get(view.casefold(), view)


def find(catalog: Catalog, view: str) -> Definition:
    """The definition of a view; UnknownView with the names that there are."""
    view = spelled(catalog, view)
    if view in catalog:
        return catalog[view]
    known = readable(catalog)
    if view in known:
        members = [member.name for member in families(catalog)[view] if not member.hidden]
        raise UnknownView(
            f"{view!r} is several tables, and this is about one",
            f"name one of them: {', '.join(sorted(members))}" if members else "read it, query it, or list its states",
        )
    raise _unknown(view, known)


def refuse_hidden(catalog: Catalog, *views: str) -> None:
    """UnknownView for a table that is stored for a view: it comes and goes with that."""
    for view in (spelled(catalog, view) for view in views):
        if view in catalog and catalog[view].hidden:
            raise _unknown(view, readable(catalog))


def _unknown(view: str, known: tuple[str, ...]) -> UnknownView:
    return UnknownView(
        f"the warehouse has no view {view!r}", f"{did_you_mean(view, known)}it has: {', '.join(known) or 'none yet'}"
    )


def free_name(catalog: Catalog, view: str) -> str:
    """The name, if a new view may have it."""
    if not view or not view.strip():
        raise DefinitionError("a view needs a name", "such as big_orders")
    if taken := [other for other in (*catalog, *families(catalog)) if other.casefold() == view.casefold()]:
        raise DefinitionError(
            f"there is a view {taken[0]!r} already",
            "change it with CREATE OR REPLACE (create-view --replace), drop it first, or choose another name",
        )
    return view


def free_folder(store: LocalStore, view: str, taken: Iterable[str]) -> str:
    """A folder for a new view: its name, as far as file systems and URIs allow, and a number if it is taken."""
    plain = f"{VIEWS}/{re.sub(r'[^A-Za-z0-9_]', '_', view)[:LONGEST_FOLDER]}"
    used = {folder.casefold() for folder in taken}
    used |= {f"{VIEWS}/{name}".casefold() for name in store.names(VIEWS)}
    candidate, number = plain, 1
    while candidate.casefold() in used:
        number += 1
        candidate = f"{plain}-{number}"
    return candidate
