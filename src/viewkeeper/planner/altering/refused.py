"""Definitions that creating the view would refuse, as far as that is known before anything is read."""

from collections.abc import Collection

from viewkeeper.algorithms.registry import Transactions
from viewkeeper.lake.log.catalog import Catalog
from viewkeeper.mediator.choice import choose
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.kept_views import KeptViews, refuse_over_views
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.automatic import REMOTE, Decision
from viewkeeper.planner.self_maintained.choosing import is_automatic, refuse_storage, storage_for
from viewkeeper.planner.self_maintained.planned import supposed
from viewkeeper.planner.summaries.lattice import lattice_name
from viewkeeper.planner.summaries.refused import refuse_joining, refuse_summary, refuse_unreadable, taken_group
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.view import View
from viewkeeper.summary.defined import defined


def refuse_new(overview: Overview, staying: Catalog, new: Parsed) -> None:
    """The error that creating a view beside those that stay would end with."""
    if isinstance(new, SummaryView | Family):
        _refuse_summary(overview, staying, new)
        return
    # How often sources change, which takes a look at the log, is of interest only where the choice is viewkeeper's.
    rates = overview.rates if is_automatic(new) else {}
    decision = storage_for(new, overview.sources.definitions(), rates)
    if decision.storage != REMOTE:
        supposed(new, decision)
    else:
        assert isinstance(new, View)
        KeptViews(lambda: staying, overview.sources).how(new)


def refuse_in_itself(new: Parsed, single: Collection[str] = ()) -> None:
    """The error that creating a view would end with in any warehouse over sources of which these have declared that
    their transactions are single updates."""
    if isinstance(new, SummaryView | Family):
        _fact_of(new)
        return
    storage = refuse_storage(new)
    if isinstance(new, View) and VIEWS in new.sources:
        refuse_over_views(new)
    elif isinstance(new, View) and storage == REMOTE:
        choose(new, Transactions.SINGLE if set(new.sources) <= set(single) else Transactions.LOCAL)
    elif storage is not None:
        supposed(new, Decision(storage, ()))


def _fact_of(new: SummaryView | Family) -> Relation:
    """The fact of a summary; the error of one that cannot be."""
    refuse_summary(new)
    views = [member.view for member in new.members] if isinstance(new, Family) else [new]
    made = [defined(view, recompute=dict(new.properties).get("minmax") == "recompute") for view in views]
    return made[0].star.fact


def _refuse_summary(overview: Overview, staying: Catalog, new: SummaryView | Family) -> None:
    fact, properties = _fact_of(new), dict(new.properties)
    name = lattice_name(fact.name, properties)
    lattice = overview.lattices.get(name)
    if lattice is not None and not set(lattice.visible) & set(staying):
        lattice = None
    if lattice is not None:
        refuse_joining(lattice.name, lattice.facts, lattice.visible, new, fact)
    elif any(view.group == name and not view.hidden for view in staying.values()):
        raise taken_group(name, fact)
    stored = fact.source == VIEWS or properties.get("core") == "stored"
    refuse_unreadable(new, readable=stored if lattice is None else lattice.facts.readable)
