"""Strict reading of YAML: every value knows its line, and what is not expected is an error.

    Value("sources.shop.url", node)    .text() .flag() .whole_number() .items() .entries() .fields(known)

Nothing is guessed: a number where text is expected, a field that means nothing, a key that is there twice are errors.
Values given in Python go through the same checks: they are made into nodes first.
"""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from viewkeeper.errors import ProjectError
from viewkeeper.project.places import Place, problem
from viewkeeper.sources.variables import references, replaced, stray

_TAG = "tag:yaml.org,2002:"
_TYPES = {"str": "text", "int": "a number", "float": "a number", "bool": "true or false", "null": "nothing",
          "seq": "a list", "map": "a mapping", "timestamp": "a date"}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """Text as it is written, and with the variables in it replaced. Only what is written is ever shown."""

    written: str
    value: str
    place: Place

    def __repr__(self) -> str:
        return repr(self.written)


@dataclass(frozen=True)
class Value:
    """A value of the file, and the names that lead to it."""

    path: str
    node: yaml.Node
    origin: Place
    environment: Mapping[str, str]

    @property
    def place(self) -> Place:
        return _place(self.node, self.origin)

    def problem(self, detail: str, hint: str = "") -> ProjectError:
        return problem(self.place, detail, hint)

    @property
    def type(self) -> str:
        """What it is, in one word of YAML: str, int, bool, seq, map, ..."""
        return str(self.node.tag).removeprefix(_TAG)

    def expected(self, what: str, hint: str = "") -> ProjectError:
        """The error for a value of another type."""
        return self.problem(f"{self.path or 'the file'} must be {what}, and is {_TYPES.get(self.type, 'a tag')}", hint)

    # --- one value ---

    def text(self) -> Text:
        """Text, with its variables."""
        if self.type != "str":
            quoted = isinstance(self.node, yaml.ScalarNode) and self.type != "null"
            raise self.expected("text", "write it in quotes" if quoted else "give it a value, or leave it out")
        return self._text()

    def plain(self) -> Text:
        """Text or a number, as it is written."""
        if self.type not in ("str", "int", "float"):
            raise self.expected("text or a number", "write one value, and a word such as no or on in quotes")
        return self._text()

    def _text(self) -> Text:
        assert isinstance(self.node, yaml.ScalarNode)
        written: str = self.node.value
        if (odd := stray(written)) is not None:
            raise self.problem(
                f"{self.path} has {odd!r}, which names no variable",
                "write ${NAME}, or ${NAME:-default}; write $${ for the two characters themselves",
            )
        for reference in references(written):
            if reference.value(self.environment) is None:
                raise self.problem(
                    f"{self.path} needs the environment variable {reference.name}, which is not set",
                    f"set it (export {reference.name}=...), or write ${{{reference.name}:-default}}",
                )
        value = replaced(written, lambda reference: reference.value(self.environment) or "")
        return Text(written, value, self.place)

    def flag(self) -> bool:
        if self.type != "bool" or not isinstance(self.node, yaml.ScalarNode):
            raise self.expected("true or false", "write one of the two, without quotes")
        return str(self.node.value).lower() in ("true", "yes", "on")

    def whole_number(self) -> int:
        if self.type != "int" or not isinstance(self.node, yaml.ScalarNode) or not str(self.node.value).isdecimal():
            raise self.expected("a whole number, 0 or more", "write it without quotes, such as 5")
        return int(self.node.value)

    # --- several values ---

    def items(self) -> list["Value"]:
        """The values of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.expected("a list", "write [one, two], or each on a line of its own after a dash")
        return [self._below(f"{self.path}[{index}]", node) for index, node in enumerate(self.node.value)]

    def texts(self) -> tuple[Text, ...]:
        """The texts of a list; one text alone is a list too."""
        return (self.text(),) if self.type == "str" else tuple(item.text() for item in self.items())

    def entries(self) -> dict[str, "Value"]:
        """The values of a mapping, whose keys are up to the user."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.expected("a mapping", "write name: value, each on a line of its own")
        found: dict[str, Value] = {}
        for key, node in self.node.value:
            place = _place(key, self.origin)
            if not isinstance(key, yaml.ScalarNode) or key.tag != f"{_TAG}str":
                raise problem(place, f"a name in {self.path or 'the file'} is no text", "write it in quotes")
            if key.value in found:
                inside = f"{self.path} has" if self.path else "there is"
                raise problem(place, f"{inside} {key.value} twice", "keep one of the two")
            found[key.value] = self._below(f"{self.path}.{key.value}" if self.path else key.value, node)
        return found

    def fields(self, known: Collection[str]) -> dict[str, "Value"]:
        """The values of a mapping that has these fields and no others."""
        found = self.entries()
        assert isinstance(self.node, yaml.MappingNode)
        for key, _ in self.node.value:
            if key.value not in known:
                what = f"{self.path} has no field {key.value}" if self.path else f"there is no field {key.value}"
                raise problem(_place(key, self.origin), what, meant(key.value, known, "the fields are"))
        return found

    def _below(self, path: str, node: yaml.Node) -> "Value":
        return Value(path, node, self.origin, self.environment)


def meant(name: str, known: Collection[str], there_is: str, otherwise: str = "") -> str:
    """A hint that names what was probably meant, or everything there is; and what else it might be."""
    close = difflib.get_close_matches(name.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]}?" + (f" {otherwise[0].upper()}{otherwise[1:]}" if otherwise else "")
    return f"{there_is} {', '.join(known) or 'none'}" + (f"; {otherwise}" if otherwise else "")


def read_yaml(file: Path, environment: Mapping[str, str]) -> Value:
    """The content of a file; ProjectError if it is no YAML."""
    start = Place(file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise problem(start, f"it cannot be read: {error.strerror}", "viewkeeper init writes an example") from error
    except UnicodeDecodeError as error:
        raise problem(start, "the file is not UTF-8 text", "save it as UTF-8") from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = start.at(mark.line + 1) if mark is not None else start
        hint = (
            "indent with spaces, not with tabs"
            if "'\\t'" in str(error.problem)
            else "see the example of viewkeeper init"
        )
        raise problem(place, f"this is not YAML: {error.problem or error.context}", hint) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise problem(start.at(line), "the file has a character that YAML does not allow", "remove it") from None
    except RecursionError:
        raise problem(start, "the file is nested too deeply", "see the example of viewkeeper init") from None
    if node is None:
        raise problem(start, "the file is empty", "viewkeeper init writes an example")
    return Value("", node, start, environment)


def python_value(path: str, given: Any, origin: Place, environment: Mapping[str, str]) -> Value:
    """The same for what was given in Python."""
    try:
        node = yaml.representer.SafeRepresenter(sort_keys=False).represent_data(given)
    except yaml.representer.RepresenterError:
        raise problem(origin, f"{path} holds something that is no text, number, list or mapping") from None
    return Value(path, node, origin, environment)


def _place(node: yaml.Node, origin: Place) -> Place:
    mark = node.start_mark
    return origin if mark is None else origin.at(mark.line + 1)
