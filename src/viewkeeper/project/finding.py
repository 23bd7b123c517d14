"""Where the project is: `viewkeeper.yml` in a folder or in the nearest one above it, as git finds its own.

Imports little, because every verb asks.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from viewkeeper.errors import ProjectError

NAME = "viewkeeper.yml"
WAREHOUSE = "warehouse"


def find_project_file(start: str | os.PathLike[str] = ".") -> Path | None:
    """The file of the project that a folder belongs to; None if it belongs to none."""
    folder = Path(start).expanduser().absolute()
    for place in (folder, *folder.parents):
        if (place / NAME).is_file():
            return place / NAME
    return None


def project_file(path: str | os.PathLike[str]) -> Path:
    """The file that a path names: itself, or that of the folder; ProjectError if there is none."""
    given = Path(path).expanduser().absolute()
    if given.is_file():
        return given
    if not given.is_dir():
        raise ProjectError(f"there is no {given}", f"name a folder with a {NAME}, or that file")
    found = find_project_file(given)
    if found is None:
        raise ProjectError(
            f"there is no {NAME} in {given} or above it",
            "'viewkeeper init FOLDER' makes an example project; -p names the folder of another",
        )
    return found


def warehouse_of(file: Path, environment: Mapping[str, str]) -> Path:
    """The folder of the warehouse that a project file names. What else is in the file is not looked at."""
    from viewkeeper.project.yaml_values import read_yaml

    fields = read_yaml(file, environment).entries()
    return file.parent / Path(fields[WAREHOUSE].text().value if WAREHOUSE in fields else WAREHOUSE).expanduser()
