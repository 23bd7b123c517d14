"""The sources of a warehouse: added, opened when needed, removed."""

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from viewkeeper.algorithms.registry import Transactions
from viewkeeper.errors import DefinitionError, SourceError, SourceUnfit, UnknownName, ViewkeeperError, did_you_mean
from viewkeeper.lake.log.source_files import WORKSPACES, SourceDefinition, SourceFiles
from viewkeeper.lake.tables.files import Files
from viewkeeper.messages import Position
from viewkeeper.planner.allowed_variables import AllowedVariables
from viewkeeper.planner.declared import as_the_source_spells, check_declared, foreign_keys_after, hierarchies_after
from viewkeeper.sources.base import Finding, Request, Source, statements
from viewkeeper.sources.layout import VIEW, Alteration, extended
from viewkeeper.sources.lazy import LazySource, altered_since
from viewkeeper.sources.registry import kind_of, open_source
from viewkeeper.sources.urls import naming_variables, resolved, shown
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.hierarchies import Chains, Declared, chains_of

INSTALL = "add it with install=True"
UNNAMED = "source"
"""what a source is called that has no name yet"""

_MOVABLE = ("sqlite", "postgres", "files")
"""kinds of which it can be told that they are what they were, by what capture has put in place"""
_KEPT_FOR_US = ("postgres",)
"""kinds at which what was made by hand is taken down too: a slot that nobody follows keeps WAL for ever"""
_NOTED_HERE = ("files", "delta")
"""kinds of which capture needs notes in the warehouse, and nothing at the source"""
LONGEST_NAME = 60
SOURCE_NAME = re.compile(r"[a-z_][a-z0-9_]*")


class KnownSources:
    """What has been added, and the connections that are open."""

    def __init__(self, files: Files, identity: str, allowed: AllowedVariables) -> None:
        self._files = files
        self._allowed = allowed
        self._identity = identity
        self._definitions = SourceFiles(files.store)
        self._open: dict[str, LazySource] = {}
        self._urls: dict[str, str] = {}
        self._supposed: Mapping[str, Relation] = {}
        """relations that are taken otherwise than they are registered"""

    def definitions(self) -> dict[str, SourceDefinition]:
        known = self._definitions.all()
        if not self._supposed:
            return known
        return {
            name: replace(
                one, relations={each: self._supposed.get(each, as_is) for each, as_is in one.relations.items()}
            )
            for name, one in known.items()
        }

    def supposing(self, relations: Mapping[str, Relation]) -> "KnownSources":
        """The same sources, with some relations as they would be registered."""
        supposed = KnownSources(self._files, self._identity, self._allowed)
        supposed._supposed = relations
        return supposed

    def definition(self, name: str) -> SourceDefinition:
        known = self.definitions()
        name = name.lower()
        if name not in known:
            raise UnknownName(
                f"the warehouse has no source {name!r}",
                f"{did_you_mean(name, known)}it has: {', '.join(sorted(known)) or 'none yet'}",
            )
        return known[name]

    def transactions(self, sources: Sequence[str]) -> Transactions:
        """What the sources of a view commit at once: over several of them, at one, or a single update."""
        definitions = [self.definition(name) for name in sources]
        if sum(one.global_transactions for one in definitions) > 1:
            return Transactions.GLOBAL
        return max((one.transactions for one in definitions), key=list(Transactions).index)

    def relations(self) -> dict[str, Relation]:
        """Every relation of every source, by full name."""
        return {name: one for definition in self.definitions().values() for name, one in definition.relations.items()}

    # --- adding and removing ---

    def add(
        self,
        name: str,
        url: str,
        tables: Sequence[str] | None,
        keys: Mapping[str, str | Sequence[str]],
        foreign_keys: Sequence[tuple[str, str]],
        hierarchies: Mapping[str, Declared],
        *,
        install: bool,
        transactions: str | None = None,
    ) -> SourceDefinition:
        """Connect, check what capture needs (or put it in place), and remember the source."""
        if not SOURCE_NAME.fullmatch(name):
            raise DefinitionError(
                f"a source cannot be named {name!r}", "use lower-case letters, digits and _, as in shop or crm_2"
            )
        if len(name) > LONGEST_NAME:
            raise DefinitionError(
                f"the name of a source has at most {LONGEST_NAME} characters, and {name[:20]}... has {len(name)}",
                "choose a shorter name: a file and what is installed at the source carry it",
            )
        declared = declared_transactions(transactions)
        before = self.definitions().get(name)
        if before is not None and shown(url) != before.url:
            raise DefinitionError(
                f"there is a source {name!r} already, at {before.url}", "remove it first, or choose another name"
            )
        if before is not None:
            # Added again: with more tables, or to give the password for this session. What was declared stays.
            if tables is not None and before.tables is not None:
                tables = list(dict.fromkeys((*before.tables, *tables)))
            keys = {**before.keys, **keys}
            declared = declared or before.transactions
        request = Request(
            name,
            resolved(name, url, os.environ),
            self._identity,
            None if tables is None else tuple(tables),
            {table: (key,) if isinstance(key, str) else tuple(key) for table, key in keys.items()},
        )
        source = self._opened(request, url)
        try:
            altered = {} if before is None else altered_since(before.relations, source)
            foreign_keys, chains = _declared(before, name, source.relations, foreign_keys, hierarchies)
            check_declared(name, source.relations, foreign_keys, chains)
            definition = SourceDefinition(
                name,
                shown(url),
                request.tables,
                request.keys,
                registered_from(before, source, wider=False),
                install or (before is not None and before.installed),
                source.global_transactions,
                foreign_keys,
                chains,
                {} if before is None else before.anew,
                declared or Transactions.LOCAL,
            )
            self._allowed.note(name, url)
            if install:
                self._install(definition, source, before)
            else:
                refuse_unfit(name, source, install, source.relations)
            relations, anew = registered_from(before, source, wider=False), _anew(before, altered, source)
            self._definitions.write(
                replace(definition, relations=relations, anew=anew, global_transactions=source.global_transactions)
            )
            # Last: what was altered is known by what is noted, until the definition says it.
            source.note(() if install or before is None else before.relations)
        finally:
            source.close()
        self._urls[name] = url
        self._forget(name)
        return self.definition(name)

    def _install(self, definition: SourceDefinition, source: Source, before: SourceDefinition | None) -> None:
        """Put in place what capture needs. It is written down first: whatever happens then, `remove` can undo it."""
        self._definitions.write(definition if before is None else replace(before, installed=True))
        try:
            source.install()
            refuse_unfit(definition.name, source, True, source.relations)
        except ViewkeeperError:
            if before is None:
                # What cannot be undone now stays written down.
                source.remove()
                self._definitions.remove(definition.name)
            raise

    def move(self, name: str, url: str) -> None:
        """The same source at another URL. What capture has put in place must be there: that is how it is known."""
        definition = self.definition(name)
        name = definition.name
        refuse_move(definition, url)
        # Tables that have come since are not captured yet, and say nothing.
        tables = tuple(relation.removeprefix(f"{name}.") for relation in definition.relations)
        request = Request(name, resolved(name, url, os.environ), self._identity, tables, definition.keys)
        with closing(self._opened(request, url)) as source:
            fatal = [finding.what for finding in source.doctor() if finding.fatal]
            if fatal or not definition.relations.keys() <= source.relations.keys():
                raise SourceUnfit(
                    f"what is at {shown(url)} is not what source {name} was at {definition.url}: "
                    + ("; ".join(fatal) or "tables are missing"),
                    "put the database there with all that viewkeeper installed in it; or give the source another name",
                )
        self._allowed.note(name, url)
        self._definitions.write(replace(definition, url=shown(url)))
        self._urls[name] = url
        self._forget(name)

    def remove(self, name: str, *, force: bool = False) -> list[str]:
        """Take down what was put in place for capture, and forget the source; what somebody else has to run.

        A source that cannot be reached is forgotten only by `force`: what was put in place there stays.
        """
        definition = self.definition(name)
        name = definition.name
        left: list[str] = []
        try:
            if definition.installed or definition.kind in _KEPT_FOR_US:
                left = self.source(name).remove()
        except SourceError as error:
            if not force:
                hint = f"{error.hint}; " if error.hint else ""
                raise type(error)(
                    error.detail, f"{hint}or forget it and leave there what was installed, by force"
                ) from None
        self._forget(name)
        self._definitions.remove(name)
        self._allowed.withdraw(name, definition.url)
        shutil.rmtree(self._files.store.path(f"{WORKSPACES}/{name}"), ignore_errors=True)
        return left

    def refresh(self, name: str, needed: Collection[str] = (), *, wider: bool = True) -> SourceDefinition:
        """Look at the source again: its relations as they are now, and what capture needs put in place again.

        SourceUnfit if what all relations need, or one of those that are `needed`, cannot be captured. Columns that were
        widened stay what they were registered as, unless `wider`: views over them must be computed again then."""
        definition = self.definition(name)
        self._forget(name)
        source = self.source(name).opened()
        altered = altered_since(definition.relations, source)
        if definition.installed or definition.kind in _NOTED_HERE:
            source.install()
        refuse_unfit(name, source, definition.installed, needed)
        relations = registered_from(definition, source, wider=wider)
        definition = replace(definition, relations=relations, anew=_anew(definition, altered, source))
        self._definitions.write(definition)
        source.note()
        self._forget(name)
        return definition

    def with_new_columns(self, names: Collection[str]) -> dict[str, Relation]:
        """The relations of these sources with the columns that they were given since they were added; those of a source
        that is out of reach as they are registered. Nothing is written."""
        found: dict[str, Relation] = {}
        for name in names:
            definition = self.definition(name)
            # As it is now: one that is open has looked at its tables before.
            with suppress(SourceError), closing(self._opened_as(definition)) as source:
                found |= {
                    relation: extended(definition.relations[relation], one, wider=False)
                    for relation, one in source.found.items()
                    if relation in definition.relations
                }
        return found

    def doctor(self, source: str, name: str | None = None, tables: Sequence[str] | None = None) -> list[Finding]:
        """What is missing or risky at a source that was added, or at one that might be, by its URL and the name and
        tables that it is to have: what is installed there carries them."""
        if "://" not in source:
            known = self.source(self.definition(source).name)
            altered = [_altered(name, one) for name, several in known.altered().items() for one in several]
            return [*known.doctor(), *altered]
        name = name or UNNAMED
        chosen = None if tables is None else tuple(tables)
        refused: dict[str, ViewkeeperError] = {}
        request = Request(name, resolved(name, source, os.environ), self._identity, chosen, refused=refused)
        with (
            naming_variables(name, source, os.environ),
            tempfile.TemporaryDirectory(prefix="viewkeeper-") as workspace,
            closing(open_source(request, self._files.spark, Path(workspace))) as opened,
        ):
            left_out = [
                Finding(f"{table} is left out: {error.detail}", error.hint, relations=(f"{name}.{table}",))
                for table, error in refused.items()
            ]
            return [*left_out, *opened.doctor()]

    # --- connections ---

    def source(self, name: str) -> LazySource:
        """A source, opened when it is first used, and kept."""
        if name not in self._open:
            definition = self.definition(name)
            self._open[name] = LazySource(
                name, definition.relations, lambda: self._opened_as(definition), definition.anew
            )
        return self._open[name]

    def _opened_as(self, definition: SourceDefinition) -> Source:
        """With the tables that were registered: others that have come since are nobody's business yet."""
        name, url = definition.name, self._urls.get(definition.name)
        if url is None:
            self._allowed.check(name, url := definition.url)
        tables = tuple(relation.removeprefix(f"{name}.") for relation in definition.relations)
        request = Request(
            name,
            resolved(name, url, os.environ),
            self._identity,
            tables,
            definition.keys,
            definition.relations,
            registered=True,
        )
        return self._opened(request, url)

    def _opened(self, request: Request, url: str) -> Source:
        """`url` is what the one of the request was made from."""
        workspace = self._files.store.path(f"{WORKSPACES}/{request.name}")
        self._files.store.refuse_links(f"{WORKSPACES}/{request.name}")
        with naming_variables(request.name, url, os.environ):
            return open_source(request, self._files.spark, workspace)

    def _forget(self, name: str) -> None:
        source = self._open.pop(name, None)
        if source is not None:
            source.close()

    def close(self) -> None:
        for name in tuple(self._open):
            try:
                self._forget(name)
            except SourceError:
                continue


def refuse_unfit(name: str, source: Source, installed: bool, needed: Collection[str]) -> None:
    """SourceUnfit if something is missing that capturing these relations needs."""
    named = {relation.casefold() for relation in needed}
    fatal = [
        finding
        for finding in source.doctor()
        if finding.fatal and (not finding.relations or any(one.casefold() in named for one in finding.relations))
    ]
    if fatal:
        raise SourceUnfit(
            f"source {name} is not ready: " + "; ".join(finding.what for finding in fatal),
            ("run:" if installed else f"{INSTALL}, or run:") + statements(fatal),
        )


def refuse_move(definition: SourceDefinition, url: str) -> None:
    """DefinitionError for a URL that is no other place of the same source."""
    if kind_of(url) != definition.kind or definition.kind not in _MOVABLE:
        raise DefinitionError(
            f"source {definition.name} is at {definition.url}, and cannot be moved to {shown(url)}",
            "give the source of the new URL a name of its own, and let the views read that",
        )


def declared_transactions(name: str | None) -> Transactions | None:
    """What a user declares of the transactions of a source, if anything."""
    known = (Transactions.LOCAL, Transactions.SINGLE)
    if name is None:
        return None
    if name not in known:
        raise DefinitionError(
            f"the transactions of a source cannot be declared {name!r}",
            f"{did_you_mean(name, known)}declare single, if each of them is a single update, or local; global ones are "
            "known by the table global_tx",
        )
    return Transactions(name)


def _declared(
    before: SourceDefinition | None,
    name: str,
    relations: Mapping[str, Relation],
    foreign_keys: Sequence[tuple[str, str]],
    hierarchies: Mapping[str, Declared],
) -> tuple[tuple[tuple[str, str], ...], dict[str, Chains]]:
    """What is declared of a source, now and before. Names are spelled first: they say what is added to or withdrawn."""
    given = {table: chains_of(one) for table, one in hierarchies.items()}
    keys, chains = as_the_source_spells(name, relations, foreign_keys, given)
    keys_before, chains_before = as_the_source_spells(
        name, relations, () if before is None else before.foreign_keys, {} if before is None else before.hierarchies
    )
    return foreign_keys_after(keys_before, keys), hierarchies_after(chains_before, chains)


def registered_from(before: SourceDefinition | None, source: Source, *, wider: bool) -> dict[str, Relation]:
    """The relations of a source as they are registered from now on: what was registered stays in its place."""
    known = {} if before is None else before.relations
    return {name: extended(known.get(name), found, wider=wider) for name, found in source.found.items()}


def _anew(
    before: SourceDefinition | None, altered: Mapping[str, Sequence[Alteration]], source: Source
) -> dict[str, tuple[tuple[Position, Alteration], ...]]:
    """The relations that are registered again, with the place up to which others have rows of what they were."""
    told = dict(before.anew) if before is not None else {}
    if altered:
        end = source.end()
        for name, several in altered.items():
            about = {one.columns for one in several}
            earlier = ((until, one) for until, one in told.get(name, ()) if one.columns not in about)
            told[name] = (*earlier, *((end, one) for one in several))
    return told


def _altered(relation: str, found: Alteration) -> Finding:
    return Finding(
        f"{relation} is not as it was when it was added: {found.reason.replace(VIEW, 'VIEW')}",
        "views that read it are halted: alter those that name what is gone, and reload them",
        fatal=False,
    )
