"""When deferred lattices are refreshed by the clock, and when what waits for them is propagated in between."""

from viewkeeper.clock import monotonic
from viewkeeper.errors import ViewkeeperError
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.sql.refresh_mode import RefreshMode

PROPAGATE_AT = 50_000
"""Noted changes that are propagated without being asked, so that a refresh finds little left to do."""


class Schedule:
    """The clock of one run."""

    def __init__(self, summaries: Summaries) -> None:
        self._summaries = summaries
        self._since: dict[str, float] = {}

    def look(self) -> None:
        """Do what is due. A lattice that cannot be refreshed is halted, and the others go on."""
        for lattice in self._summaries.lattices().values():
            if lattice.deferred and not self._summaries.is_halted(lattice):
                try:
                    self._do(lattice)
                except ViewkeeperError as error:
                    self._summaries.halt(lattice, error.detail)

    def _do(self, lattice: Lattice) -> None:
        seconds = lattice.refresh.seconds
        since = self._since.setdefault(lattice.name, monotonic())
        if lattice.refresh.mode is RefreshMode.EVERY and seconds is not None and monotonic() - since >= seconds:
            self._since[lattice.name] = monotonic()
            self._summaries.refresh(lattice)
        elif self._summaries.noted(lattice) >= PROPAGATE_AT:
            self._summaries.propagate(lattice)
