"""Names and numbers as people write them."""

import re
from collections.abc import Iterable

from sqlglot.dialects.spark import Spark

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_WORDS = frozenset(word for phrase in Spark.Tokenizer.KEYWORDS for word in phrase.split())


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


def in_sql(name: str, quote: str) -> str:
    """A name as it can stand in a statement: with quotes around it, if it is a word of SQL or has odd characters."""
    if _PLAIN.fullmatch(name) and name.upper() not in _WORDS:
        return name
    return f"{quote}{name.replace(quote, 2 * quote)}{quote}"
