"""What past refreshes of a view took, for its explanation."""

from viewkeeper.explaining.explanation import Measured
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.refreshes import refreshes_of


def measured_of(overview: Overview, view: str) -> Measured | None:
    """As the newest commits tell it; None if there is no such view yet, or it was not refreshed in them."""
    definition = overview.catalog.get(view)
    if definition is None:
        return None
    found = refreshes_of(definition, overview.newest)
    if not found.updates or found.typical is None:
        return None
    return Measured(
        len(found.seconds),
        found.typical,
        found.updates,
        found.queries_per_update,
        len(overview.newest),
        found.typical_own,
    )
