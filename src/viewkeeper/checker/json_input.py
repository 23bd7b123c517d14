"""JSON that knows where it stands, so that an error can name the place.

deliveries[3].changes[0][1]: expected a list, found "x"
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import HistoryError


@dataclass(frozen=True)
class Node:
    """A JSON value and the path that leads to it."""

    value: Any
    path: str = ""

    def error(self, expected: str, hint: str = "") -> HistoryError:
        """The error that this is not what was expected."""
        return self.problem(f"expected {expected}, found {_shown(self.value)}", hint)

    def problem(self, detail: str, hint: str = "") -> HistoryError:
        """An error at this place."""
        return HistoryError(f"{self.path or 'the history'}: {detail}", hint)

    def members(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.error("an object")
        return self.value

    def items(self) -> Iterator[tuple[str, "Node"]]:
        """The members of an object whose keys are names."""
        for key, value in self.members().items():
            yield key, Node(value, f'{self.path}["{key}"]')

    def member(self, key: str) -> "Node":
        members = self.members()
        if key not in members:
            found = ", ".join(f'"{name}"' for name in members) or "nothing"
            raise self.problem(f'expected the key "{key}", found {found}')
        return Node(members[key], self._below(key))

    def optional(self, key: str) -> "Node | None":
        """The member, or None if it is missing or null."""
        value = self.members().get(key)
        return None if value is None else Node(value, self._below(key))

    def elements(self) -> list["Node"]:
        if not isinstance(self.value, list):
            raise self.error("a list")
        return [Node(value, f"{self.path}[{index}]") for index, value in enumerate(self.value)]

    def parts(self, *names: str) -> list["Node"]:
        """The elements of a list that has exactly one for each name."""
        found = self.elements()
        if len(found) != len(names):
            raise self.error(f"[{', '.join(names)}]")
        return found

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("a text")
        if any("\ud800" <= character <= "\udfff" for character in self.value):
            raise self.problem("expected a text, found one with half a character (a lone surrogate)")
        return self.value

    def texts(self) -> tuple[str, ...]:
        return tuple(node.text() for node in self.elements())

    def whole_number(self, least: int | None = None) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.error("a whole number")
        if least is not None and self.value < least:
            raise self.error(f"at least {least}")
        return self.value

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def _shown(value: Any) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return f"a list of {len(value)}"
        case str():
            return f'"{value[:40]}..."' if len(value) > 40 else f'"{value}"'
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int() | float():
            return str(value)
    return f"a Python {type(value).__name__}"
