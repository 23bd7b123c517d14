"""All that a warehouse tells, to compare two of them."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stored_content import Stored

from viewkeeper.warehouse import Warehouse

Image = dict[str, Any]


def copy(original: Path, name: str = "copy") -> Path:
    """A copy of a warehouse, in the place of the one before it."""
    root = original.with_name(name)
    shutil.rmtree(root, ignore_errors=True)
    # Files of a warehouse are never written to again, the lock aside.
    shutil.copytree(original, root, copy_function=os.link, ignore=shutil.ignore_patterns("writer.lock"))
    return root


def image(root: Path) -> Image:
    """All that a warehouse tells: views, vectors, states, sizes, and the rows of every state that can be read."""
    stored, told = Stored(root), {}
    with Warehouse.open(root, read_only=True) as wh:
        for status in wh.status().views:
            view = status.view
            told[view] = {
                "definition": {name: value for name, value in stored.views[view].items() if name != "created"},
                "status": {name: value for name, value in vars(status).items() if name != "folder"},
                "states": [(state.state, state.vector, state.rows) for state in wh.states(view)],
                "rows": stored.states(view),
            }
            # What is told of the states is what is stored.
            sizes = {state: sum(rows.values()) for state, rows in told[view]["rows"].items()}
            assert sizes == {state: size for state, _, size in told[view]["states"]}
    return told


def image_after(root: Path, do: Callable[[Warehouse], None]) -> Image:
    with Warehouse.open(root, compaction=None) as wh:
        do(wh)
    return image(root)
