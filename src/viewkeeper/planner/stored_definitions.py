"""Who reads whom, by the text of the definitions: known also of a view that its sources no longer allow."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from sqlglot import exp

from viewkeeper.lake.log.catalog import Catalog, Definition, families
from viewkeeper.planner.composed.naming import COMPOSED
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import SQL
from viewkeeper.sql.definition import read_definition
from viewkeeper.sql.syntax import not_too_deep


def definition_of(view: Definition) -> str | None:
    """The text that a view, or a table of a family, was created by; None if it is not a view of its own."""
    if view.hidden:
        return None
    if COMPOSED in view.properties:
        return str(view.properties[COMPOSED]["sql"])
    if SELF_MAINTAINED in view.properties:
        return str(view.properties[SELF_MAINTAINED]["sql"])
    if SUMMARY in view.properties:
        return str(view.properties[SUMMARY]["sql"])
    return view.properties.get(SQL)


def sql_of(catalog: Catalog, name: str) -> str:
    """The text that a view or a family was created by."""
    sql = definition_of(families(catalog)[name][0] if name in families(catalog) else catalog[name])
    assert sql is not None
    return sql


@lru_cache(maxsize=1024)  # each alteration asks it of every view
def tables_in(sql: str) -> frozenset[str]:
    """The views that a definition names, in folded case."""
    with not_too_deep():
        query = read_definition(sql, None).query
        named = {one.alias.casefold() for one in query.find_all(exp.CTE)}
        return frozenset(one.name.casefold() for one in query.find_all(exp.Table) if not one.db) - named


def named_in(sql: str, names: Iterable[str]) -> frozenset[str]:
    """Those of some views that a definition names."""
    named = tables_in(sql)
    return frozenset(name for name in names if name.casefold() in named)


def dependants_of(catalog: Catalog, view: str) -> tuple[str, ...]:
    """The views and summaries that read a view, or one that does, each after those that it reads.

    The summaries of a group are refreshed together: if one of them reads it, all of them are meant. Those of a family
    are told by its name.
    """
    known = (*catalog, *families(catalog))
    reads = {name: named_in(sql, known) for name, one in catalog.items() if (sql := definition_of(one)) is not None}
    affected = {view}
    while True:
        groups = {catalog[name].group for name, read in reads.items() if read & affected and _is_summary(catalog, name)}
        more = {name for name, read in reads.items() if read & affected and not _is_summary(catalog, name)}
        more |= {name for name in reads if _is_summary(catalog, name) and catalog[name].group in groups}
        if more <= affected:
            break
        affected |= more
    affected.discard(view)
    ordered = behind_what_they_read(sorted(affected, key=lambda name: catalog[name].created), reads)
    return tuple(dict.fromkeys(catalog[name].family or name for name in ordered))


def _is_summary(catalog: Catalog, name: str) -> bool:
    return SUMMARY in catalog[name].properties


def behind_what_they_read(names: Sequence[str], reads: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The names in an order in which each can be created; those that read each other come as they are."""
    left = list(names)
    while left:
        free = next((name for name in left if not (set(reads[name]) & set(left)) - {name}), left[0])
        left.remove(free)
        yield free
