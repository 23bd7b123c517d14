"""The names of views and sources, read as fast as a shell that completes a word asks for them.

No engine and no SQL parser is imported, nothing is checked, and what cannot be read is no name: whoever uses a name
then is told what is wrong with the warehouse.
"""

import json
from pathlib import Path
from typing import Any

HOME = "_viewkeeper"
"""as in `commit_log.py`, whose import takes ten times as long as reading the names"""
HIDDEN = "_vk_"


def view_names(warehouse: Path) -> list[str]:
    """What readers know of the views at the last commit: their names, and those of families."""
    try:
        record = _read(max((warehouse / HOME / "commits").glob("[0-9]*.json")))
        views = _read(warehouse / HOME / "catalog" / f"{record['catalog']:020d}.json")["views"]
        families = {view["properties"]["family"] for view in views.values() if view["properties"].get("family")}
        return sorted({name for name in views if not name.startswith(HIDDEN)} | families)
    except (OSError, ValueError, KeyError, TypeError):
        return []


def source_names(warehouse: Path) -> list[str]:
    """The sources that were added."""
    try:
        return sorted(file.stem for file in (warehouse / HOME / "sources").glob("*.json"))
    except OSError:
        return []


def _read(file: Path) -> Any:
    if file.is_symlink():
        raise OSError
    return json.loads(file.read_bytes())
