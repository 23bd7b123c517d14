"""Groups that have failed, and when each of them is tried again.

    pause after the n-th failure in a row  =  min(2ⁿ⁻¹, 60) seconds

Every failure is tried again: of a disk, of a password, of Spark, and of this program, for what it stumbled over may be
gone the next time. What a group has committed stays, so that nothing is lost or done twice.
"""

from dataclasses import dataclass, replace

from viewkeeper.clock import monotonic
from viewkeeper.errors import ViewkeeperError
from viewkeeper.mediator.report import GroupReport

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


@dataclass
class _Retry:
    """How often a group has failed in a row, why, and when it is tried again (on the monotonic clock)."""

    attempts: int
    reason: str
    error: ViewkeeperError
    at: float


class Retries:
    """The groups of one mediator that have failed, until they go well."""

    def __init__(self) -> None:
        self._retries: dict[str, _Retry] = {}
        self._work: dict[str, GroupReport] = {}
        """what groups had done before they began again"""

    def __contains__(self, group: str) -> bool:
        return group in self._retries

    def is_due(self, group: str, failure: ViewkeeperError) -> bool:
        """Whether a group that has failed is to be tried again now."""
        known = self._retries.get(group)
        if known is None or known.error is not failure:
            self._failed(group, failure)
            return False
        return monotonic() >= known.at

    def _failed(self, group: str, failure: ViewkeeperError) -> None:
        attempts = self._retries[group].attempts + 1 if group in self._retries else 1
        pause = min(FIRST_PAUSE * 2.0 ** (attempts - 1), LONGEST_PAUSE)
        self._retries[group] = _Retry(attempts, failure.detail, failure, monotonic() + pause)

    def forget(self, group: str) -> None:
        """It goes well."""
        self._retries.pop(group, None)

    def note_work(self, report: GroupReport) -> None:
        """What a group has done that is about to begin again."""
        self._work[report.name] = self._whole(report)

    def _whole(self, report: GroupReport) -> GroupReport:
        before = self._work.get(report.name)
        return report if before is None else report.after(before)

    def counted(self, report: GroupReport) -> GroupReport:
        """The report of a group, with all that it has done. Until it goes well it counts as failed."""
        whole, known = self._whole(report), self._retries.get(report.name)
        if known is None:
            return whole
        left = max(known.at - monotonic(), 0.0)
        return replace(whole, failure=report.failure or known.reason, attempts=known.attempts, retry_in=left)
