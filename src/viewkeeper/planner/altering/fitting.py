"""Whether those that read a view can be over its new columns, and in its new group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.errors import DefinitionError, UnsupportedClause, ViewkeeperError
from viewkeeper.lake.log.catalog import Catalog, Definition
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.kept_views import KeptViews
from viewkeeper.planner.known_relations import relations_of
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.self_maintained.automatic import REMOTE
from viewkeeper.planner.self_maintained.choosing import storage_for
from viewkeeper.planner.stored_definitions import named_in
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.view import View
from viewkeeper.sql.view_keys import key_of_view


def refuse_unfit(
    staying: Catalog, sources: KnownSources, present: Sequence[Definition], new: Parsed, readers: Mapping[str, str]
) -> None:
    """DefinitionError if a new view has no place among the views that stay, or one that reads it cannot be over it."""
    supposed = _Supposed(staying, sources, {**relations_of(staying, sources.relations())}, {})
    homes = {new.name: home_of(present)}
    supposed.add(new, homes)
    unfit: dict[str, str] = {}
    for reader, sql in readers.items():
        if missing := sorted(named_in(sql, unfit)):
            unfit[reader] = f"it reads {missing[0]}"
        elif named_in(sql, [new.name]) and isinstance(new, SummaryView | Family):
            unfit[reader] = f"{new.name} would be a summary, and nothing reads one"
        else:
            try:
                supposed.add(parse_definition(sql, supposed.relations, name=reader), homes)
            except UnsupportedClause:
                # Any other query: whether it fits is found out by reading it, before anything is swapped.
                continue
            except ViewkeeperError as error:
                unfit[reader] = error.detail
    if unfit:
        reasons = "; ".join(f"{view}: {reason}" for view, reason in unfit.items())
        raise DefinitionError(
            f"{', '.join(unfit)} cannot be over the new {new.name}: {reasons}",
            f"leave {new.name} what they read, give their new definitions along with it, or drop them first",
        )


def home_of(present: Sequence[Definition]) -> str | None:
    """The group that a view should stay in, if it can; None for a summary, which is in one of summaries."""
    return None if SUMMARY in present[0].properties else present[0].group


@dataclass
class _Supposed:
    """The warehouse with views that are not there yet."""

    staying: Catalog
    sources: KnownSources
    relations: dict[str, Relation]
    groups: dict[str, str]
    """of the views that are not there yet"""

    def add(self, parsed: Parsed, homes: Mapping[str, str | None]) -> None:
        """A view more, as others would read it. Nobody reads a summary."""
        self._refuse_two_groups(parsed)
        if not isinstance(parsed, View | OuterJoinView):
            return
        remote = storage_for(parsed, self.sources.definitions(), {}).storage == REMOTE
        self.groups[parsed.name] = self._group(parsed, homes, remote)
        key = key_of_view(parsed) if isinstance(parsed, View) and remote else None
        types = tuple(column.expression.type for column in parsed.output)
        self.relations[parsed.name] = Relation(parsed.name, VIEWS, parsed.columns, types, tuple(key) if key else None)

    def _refuse_two_groups(self, parsed: Parsed) -> None:
        core = parsed.members[0].view.core if isinstance(parsed, Family) else parsed
        relations = core.core.relations if isinstance(core, SummaryView) else core.relations
        groups = {self._group_of(name) for name, relation in relations.items() if relation.source == VIEWS}
        if len(groups) > 1:
            raise UnsupportedClause(
                f"the views that {parsed.name} reads would be in the groups {', '.join(sorted(groups))}, each with "
                "states of its own",
                "define them with the same TBLPROPERTIES('group' = ...)",
            )

    def _group_of(self, view: str) -> str:
        return self.groups.get(view) or self.staying[view].group

    def _group(self, view: View | OuterJoinView, homes: Mapping[str, str | None], remote: bool) -> str:
        if VIEWS in view.sources:
            return self._group_of(next(iter(view.relations)))
        views = KeptViews(lambda: self.staying, self.sources, homes=homes)
        if not remote:
            return dict(view.properties).get("group") or views.free_group(view.name)
        assert isinstance(view, View)
        return views.group_for(view, views.how(view))
