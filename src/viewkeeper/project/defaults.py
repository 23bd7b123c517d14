"""Properties that views have unless they say otherwise.

    defaults:                       a property of every view that can have it
      retention: 30 days
      summaries: {refresh: manual}  and of one kind of view alone

They are written into the statement of a view, behind its name: what is created is then the same as if the user had
written it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlglot import TokenType

from viewkeeper.errors import DefinitionError
from viewkeeper.planner.composed.reading import OF_COMPOSED
from viewkeeper.planner.self_maintained.choosing import OF_SELF_MAINTAINED
from viewkeeper.planner.summaries.refused import OF_SUMMARIES
from viewkeeper.project.places import problem
from viewkeeper.project.yaml_values import Text, Value, meant
from viewkeeper.sql.definition import OF_ALGORITHMS, PROPERTIES, read_definition
from viewkeeper.sql.refresh_mode import RefreshMode, refresh_of
from viewkeeper.sql.syntax import words


class Kind(StrEnum):
    """What a view is, as `defaults` calls it."""

    JOINS = "joins"
    OUTER_JOINS = "outer_joins"
    SUMMARIES = "summaries"
    QUERIES = "queries"
    """any other query, maintained operator by operator"""
    OVER_VIEWS = "over_views"
    """a join that reads other views: most of what can be said of it is said of those"""


OF_KINDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.JOINS: (*OF_SELF_MAINTAINED, "algorithm", *OF_ALGORITHMS),
    Kind.OUTER_JOINS: OF_SELF_MAINTAINED,
    Kind.SUMMARIES: OF_SUMMARIES,
    Kind.QUERIES: OF_COMPOSED,
    Kind.OVER_VIEWS: ("retention", "refresh_policy"),
}
_CHOSEN = ("auto", "remote")
"""storages beside which an algorithm may be named"""


@dataclass(frozen=True)
class Defaults:
    """Values of properties: of every view, and of each kind."""

    common: Mapping[str, str] = field(default_factory=dict)
    of_kind: Mapping[Kind, Mapping[str, str]] = field(default_factory=dict)

    def missing(self, kind: Kind, own: Mapping[str, str]) -> dict[str, str]:
        """What a view gets that has properties of its own."""
        values = {name: value for name, value in self.common.items() if name in OF_KINDS[kind]}
        values |= self.of_kind.get(kind, {})
        values = {name: value for name, value in values.items() if name not in own}
        for name in _contradicted(own, values):
            del values[name]
        return values


def _contradicted(own: Mapping[str, str], values: Mapping[str, str]) -> set[str]:
    """Defaults that do not go together with what the view says itself."""
    gone = set()
    if own.get("storage", "remote") not in _CHOSEN:
        gone |= {"algorithm", *OF_ALGORITHMS}
    if {"algorithm", *OF_ALGORITHMS} & own.keys() and values.get("storage", "remote") not in _CHOSEN:
        gone.add("storage")
    if "refresh" in own and refresh_of(own.items()).mode is not RefreshMode.CONTINUOUS:
        gone |= {"consistency"} if values.get("consistency") == "complete" else set()
    if own.get("consistency") == "complete":
        gone.add("refresh")
    return gone & values.keys()


def read_defaults(value: Value) -> Defaults:
    """The field `defaults` of a project."""
    common: dict[str, str] = {}
    of_kind: dict[Kind, dict[str, str]] = {}
    for name, below in value.fields((*PROPERTIES, *Kind)).items():
        if name in PROPERTIES:
            common[name] = _checked(name, below.plain())
            continue
        kind = Kind(name)
        of_kind[kind] = {}
        for key, one in below.entries().items():
            if key not in OF_KINDS[kind]:
                raise one.problem(
                    f"{value.path}.{name} has no property {key}", meant(key, OF_KINDS[kind], "the properties are")
                )
            of_kind[kind][key] = _checked(key, one.plain())
    return Defaults(common, of_kind)


def _checked(name: str, text: Text) -> str:
    """The value of a property, if it may be that."""
    try:
        read_definition(f"CREATE MATERIALIZED VIEW v {_clause({name: text.value})} AS SELECT 1", None)
    except DefinitionError as error:
        # The value may come from a variable, so it is not shown.
        detail = error.detail if text.written == text.value else f"the property {name} cannot be {text.written}"
        raise problem(text.place, detail, error.hint) from None
    return text.value


def with_properties(statement: str, values: Mapping[str, str]) -> str:
    """A CREATE MATERIALIZED VIEW with more properties; no line of it moves."""
    if not values:
        return statement
    found = words(statement)
    name = 1 + next(index for index, word in enumerate(found) if word.token_type == TokenType.VIEW)
    if found[name + 1].text.upper() == "TBLPROPERTIES":
        at = found[name + 2].end + 1
        return f"{statement[:at]}{_pairs(values)}, {statement[at:]}"
    at = found[name].end + 1
    return f"{statement[:at]} {_clause(values)}{statement[at:]}"


def _clause(values: Mapping[str, str]) -> str:
    return f"TBLPROPERTIES ({_pairs(values)})"


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{_escaped(value)}'" for name, value in values.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def create_statement(name: str, properties: Mapping[str, str], query: str, comment: str | None = None) -> str:
    """The statement that makes a view of a query, whose lines stay where they are."""
    quoted = "`" + name.replace("`", "``") + "`"
    clause = f" {_clause(properties)}" if properties else ""
    said = f" /* {' '.join(comment.split()).replace('*/', '* /').replace('/*', '/ *')} */" if comment else ""
    return f"CREATE MATERIALIZED VIEW {quoted}{clause} AS{said} {query}"
