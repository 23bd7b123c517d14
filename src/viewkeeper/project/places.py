"""Where something of a project is written, and errors that say so.

    views/named.sql:3: no source has a table shop.orderz (column 22)

A file is shown as it is called from the current folder, if it is in it or below it.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.errors import ProjectError, ViewkeeperError

_LINE = re.compile(r"\bline (\d+), (?=column \d+)")


@dataclass(frozen=True)
class Place:
    """A line of a file; or of what was given in Python, which is called `where`."""

    file: Path | None = None
    line: int = 1
    where: str = ""
    numbered: bool = True
    """whether the lines of a text that begins here are the lines of the file"""

    def __str__(self) -> str:
        if self.file is None:
            return self.where
        return f"{shown_path(self.file)}:{self.line}"

    def at(self, line: int) -> "Place":
        return Place(self.file, line, self.where, self.numbered)


def shown_path(path: Path) -> str:
    """A path as people in the current folder would call it."""
    here = os.getcwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)


def problem(place: Place, detail: str, hint: str = "") -> ProjectError:
    """An error in the project at a place."""
    return ProjectError(f"{place}: {detail}", hint)


def placed(error: ViewkeeperError, place: Place) -> ViewkeeperError:
    """An error about the text that stands at a place, with its place in front.

    The text is made so that its lines have the numbers that they have in the file, if there is one.
    """
    detail = error.detail
    found = _LINE.search(detail)
    if place.file is not None and place.numbered and found is not None:
        place, detail = place.at(int(found[1])), _LINE.sub("", detail, count=1)
    return type(error)(f"{place}: {detail}", error.hint, code=error.code)
