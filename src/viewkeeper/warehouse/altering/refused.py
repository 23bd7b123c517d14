"""Definitions that creating the view would refuse, as far as that is known before anything is read."""

from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.view import View
from viewkeeper.summary.defined import defined
from viewkeeper.warehouse.altering.canonical import Parsed
from viewkeeper.warehouse.catalog import Catalog
from viewkeeper.warehouse.kept_views import KeptViews
from viewkeeper.warehouse.self_maintained.automatic import REMOTE
from viewkeeper.warehouse.self_maintained.choosing import is_automatic, storage_for
from viewkeeper.warehouse.self_maintained.creating import supposed
from viewkeeper.warehouse.summaries.lattice import lattice_name
from viewkeeper.warehouse.summaries.overview import Overview
from viewkeeper.warehouse.summaries.refused import refuse_joining, refuse_summary, refuse_unreadable, taken_group
from viewkeeper.warehouse.view_properties import VIEWS


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


def _refuse_summary(overview: Overview, staying: Catalog, new: SummaryView | Family) -> None:
    refuse_summary(new)
    properties = dict(new.properties)
    views = [member.view for member in new.members] if isinstance(new, Family) else [new]
    made = [defined(view, recompute=properties.get("minmax") == "recompute") for view in views]
    fact = made[0].star.fact
    name = lattice_name(fact.name, properties)
    lattice = overview.lattices.get(name)
    if lattice is not None and not set(lattice.visible) & set(staying):
        lattice = None
    if lattice is not None:
        refuse_joining(lattice, new, fact)
    elif any(view.group == name and not view.hidden for view in staying.values()):
        raise taken_group(name, fact)
    stored = fact.source == VIEWS or properties.get("core") == "stored"
    refuse_unreadable(new, readable=stored if lattice is None else lattice.facts.readable)
