"""When a view follows its sources: the property `refresh`.

continuous              as their changes come
manual                  when it is asked to
every <n> <unit>        on a clock: seconds, minutes, hours or days
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from viewkeeper.errors import DefinitionError

PROPERTY = "refresh"
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_EVERY = re.compile(rf"every\s+(\d{{1,9}})\s+({'|'.join(_SECONDS)})s?", re.IGNORECASE)


class RefreshMode(StrEnum):
    """What starts a refresh: the changes, the user or the clock."""

    CONTINUOUS = "continuous"
    MANUAL = "manual"
    EVERY = "every"


@dataclass(frozen=True)
class Refresh:
    """`seconds` is the time between two refreshes, only for EVERY."""

    mode: RefreshMode
    seconds: int | None = None


def refresh_of(properties: Iterable[tuple[str, str]]) -> Refresh:
    """When a view with these properties is refreshed; continuously if they do not say."""
    text = dict(properties).get(PROPERTY, RefreshMode.CONTINUOUS).strip()
    if text.lower() in (RefreshMode.CONTINUOUS, RefreshMode.MANUAL):
        return Refresh(RefreshMode(text.lower()))
    every = _EVERY.fullmatch(text)
    if every is None or int(every[1]) == 0:
        raise DefinitionError(
            f"the property {PROPERTY} is {text!r}, which says nothing about when",
            "choose 'continuous', 'manual', or 'every <n> seconds' (or minutes, hours, days), n at least 1",
            code="unknown-property",
        )
    return Refresh(RefreshMode.EVERY, int(every[1]) * _SECONDS[every[2].lower()])
