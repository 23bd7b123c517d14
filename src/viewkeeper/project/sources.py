"""The sources of a project: a URL each, and what can be declared with it.

    sources:
      shop: sqlite:///data/shop.db                  a path is that from the folder of the project
      crm:
        url: postgresql://ann:${CRM_PASSWORD}@db/crm
        install: true
        tables: [people]
        keys: {people: id}
        foreign_keys: {people.city: geo.cities.id}
        hierarchies: {people: [id, city]}           or a list of chains: [[day, month, year], [day, week]]
        transactions: single                        each is a single update

References to the environment stay in the URL: what is stored and shown never has the value of a variable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from viewkeeper.errors import DefinitionError
from viewkeeper.planner.known_sources import SOURCE_NAME, declared_transactions
from viewkeeper.project.places import Place, problem
from viewkeeper.project.yaml_values import Text, Value, meant
from viewkeeper.sources.registry import KINDS, kind_of
from viewkeeper.sources.urls import shown
from viewkeeper.summary.hierarchies import Chains, chains_of

FIELDS = ("url", "install", "tables", "keys", "foreign_keys", "hierarchies", "transactions")
_HERE = ("files://./", "delta://./")
_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class ProjectSource:
    """A source of a project, as `Warehouse.add_source` takes it."""

    name: str
    url: str
    place: Place
    install: bool = False
    tables: tuple[str, ...] | None = None
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    foreign_keys: tuple[tuple[str, str], ...] = ()
    hierarchies: Mapping[str, Chains] = field(default_factory=dict)
    transactions: str | None = None

    @property
    def kind(self) -> str:
        return kind_of(self.url)


def read_sources(value: Value, folder: Path) -> dict[str, ProjectSource]:
    """The field `sources` of a project."""
    return {name: _source(name, below, folder) for name, below in value.entries().items()}


def _source(name: str, value: Value, folder: Path) -> ProjectSource:
    if not SOURCE_NAME.fullmatch(name):
        raise value.problem(
            f"a source cannot be named {name!r}", "use lower-case letters, digits and _, as in shop or crm_2"
        )
    if value.type == "str":
        return ProjectSource(name, _url(value.text(), folder), value.place)
    fields = value.fields(FIELDS)
    if "url" not in fields:
        raise value.problem(f"{value.path} has no url", "add one, such as url: sqlite:///shop.db")
    return ProjectSource(
        name,
        _url(fields["url"].text(), folder),
        fields["url"].place,
        "install" in fields and fields["install"].flag(),
        tuple(one.value for one in fields["tables"].texts()) if "tables" in fields else None,
        _lists(fields["keys"]) if "keys" in fields else {},
        _foreign_keys(fields["foreign_keys"]) if "foreign_keys" in fields else (),
        _hierarchies(fields["hierarchies"]) if "hierarchies" in fields else {},
        _transactions(fields["transactions"]) if "transactions" in fields else None,
    )


def _transactions(value: Value) -> str | None:
    text = value.text()
    try:
        return declared_transactions(text.value)
    except DefinitionError as error:
        raise problem(text.place, error.detail, error.hint) from None


def _lists(value: Value) -> dict[str, tuple[str, ...]]:
    """Columns of each table."""
    found = {}
    for table, below in value.entries().items():
        found[table] = tuple(one.value for one in below.texts())
        if not found[table]:
            raise below.problem(f"{below.path} names no column", "name one or more")
    return found


def _hierarchies(value: Value) -> dict[str, Chains]:
    """One chain of columns for a table, or a list of them; [] withdraws what was declared before."""
    found: dict[str, Chains] = {}
    for table, below in value.entries().items():
        several = below.type == "seq" and any(one.type == "seq" for one in below.items())
        chains = [(one, one.texts()) for one in (below.items() if several else [below])]
        found[table] = chains_of([[column.value for column in columns] for _, columns in chains if columns])
        for one, columns in chains:
            if columns and (len(columns) < 2 or len({column.value for column in columns}) < len(columns)):
                raise one.problem(
                    f"{one.path} must name two columns or more, each once",
                    "write them with the finest first, such as [storeID, city, region]",
                )
    return found


def _foreign_keys(value: Value) -> tuple[tuple[str, str], ...]:
    """A mapping from a column to the one that it leads to, or a list of such pairs."""
    if value.type == "map":
        pairs = [(below, child, below.text().value) for child, below in value.entries().items()]
    else:
        pairs = []
        for below in value.items():
            both = [one.text().value for one in below.items()]
            if len(both) != 2:
                raise below.problem(f"{below.path} is no pair", "write [orders.cust, crm.people.id]")
            pairs.append((below, both[0], both[1]))
    for below, child, parent in pairs:
        if "." not in child or parent.count(".") < 2:
            raise below.problem(
                f"{below.path} names no foreign key",
                "write table.column: source.table.column, such as orders.cust: crm.people.id",
            )
    return tuple((child, parent) for _, child, parent in pairs)


def _url(text: Text, folder: Path) -> str:
    """The URL of a source, with its references; a relative path becomes that from the folder of the project."""
    scheme, separator, _ = text.value.partition("://")
    if not separator or scheme not in KINDS:
        what = text.written if text.written == text.value else "what the variables give"
        raise problem(
            text.place,
            f"{shown(what)} is no URL of a source",
            meant(scheme, list(KINDS), "a URL begins with one of") if separator else "write for example sqlite:///a.db",
        )
    if shown(text.written) != text.written:
        raise problem(
            text.place,
            "the URL holds a password",
            "write ${VARIABLE} in its place, and set that variable: a password belongs in no file",
        )
    here = quote(str(folder))
    for start in _HERE:
        if text.written.startswith(start):
            return f"{scheme}://{here}/{text.written.removeprefix(start)}"
    if text.value.startswith(_SQLITE) and not text.value.removeprefix(_SQLITE).startswith(("/", "%2F")):
        if not text.written.startswith(_SQLITE):
            raise problem(
                text.place,
                f"{text.written} gives a path that is not absolute",
                "begin the URL here with sqlite:///, or set the variable to sqlite:////absolute/path.db",
            )
        return f"{_SQLITE}{here}/{text.written.removeprefix(_SQLITE)}"
    return text.written
