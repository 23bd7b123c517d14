"""Durations as people write them: '7 days', '90 s', '0'."""

import re

from viewkeeper.errors import UsageError

_SECONDS = {
    "s": 1,
    "second": 1,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
    "week": 604800,
}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def seconds(duration: str | float) -> float:
    """The seconds of a duration; a bare number is seconds."""
    if isinstance(duration, int | float):
        if duration >= 0:
            return float(duration)
    elif match := _FORM.fullmatch(duration):
        number, unit = match.groups()
        unit = unit.lower()
        scale = _SECONDS.get(unit or "s") or _SECONDS.get(unit.removesuffix("s"))
        if scale:
            return float(number) * scale
    raise UsageError(f"{duration!r} is not a duration", "write '7 days', '12 hours', '30 minutes', '90 s' or '0'")


def in_words(seconds: float) -> str:
    """A duration in the largest unit that gives a whole number of them."""
    for unit in ("day", "hour", "minute"):
        number, rest = divmod(seconds, _SECONDS[unit])
        if number and not rest:
            return f"{number:.0f} {unit}{'' if number == 1 else 's'}"
    return f"{seconds:g} s"
