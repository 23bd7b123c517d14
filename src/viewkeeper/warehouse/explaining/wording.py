"""Names and numbers as people write them."""

from collections.abc import Iterable


def listed(names: Iterable[str]) -> str:
    """a; a and b; a, b and c. Each name once."""
    *others, last = dict.fromkeys(names)
    return f"{', '.join(others)} and {last}" if others else last


def counted(number: int, noun: str) -> str:
    """1 row; 2,000 rows."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def room(count: int) -> str:
    """About how much bytes are: 3 kB; 2.5 MB."""
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{max(1, round(count / 1000))} kB"
