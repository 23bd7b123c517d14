"""Values of the environment in texts that are written down.

${NAME}              the variable NAME, which must be set
${NAME:-default}     the same, or the default if it is not set or empty
$${                  the two characters ${, and no reference
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")


@dataclass(frozen=True)
class Reference:
    """One `${...}` of a text, with the place at which it begins."""

    name: str
    default: str | None
    start: int

    def value(self, environment: Mapping[str, str]) -> str | None:
        """What it stands for; None if the variable is missing."""
        found = environment.get(self.name)
        if self.default is not None and not found:
            return self.default
        return found


def references(text: str) -> Iterator[Reference]:
    """The references of a text, in its order."""
    for match in _REFERENCE.finditer(text):
        if match[1] is not None:
            yield Reference(match[1], match[2], match.start())


def replaced(text: str, value: Callable[[Reference], str]) -> str:
    """The text with the value of each reference in its place."""

    def of(match: re.Match[str]) -> str:
        return "${" if match[1] is None else value(Reference(match[1], match[2], match.start()))

    return _REFERENCE.sub(of, text)


def stray(text: str) -> str | None:
    """A `${` that begins no reference, with what follows it; None if there is none."""
    rest = _REFERENCE.sub(lambda match: " " * len(match[0]), text)
    at = rest.find("${")
    return None if at < 0 else text[at : at + 20]
