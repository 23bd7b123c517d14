"""Where warehouses are made, and the one that most tests start from."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from lakes import prepare


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder in memory if there is one: kills and failures are simulated, and syncing a disk is slow."""
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def prepared(place: Path) -> Path:
    """A warehouse with two groups and a few states, that nobody writes to: make a copy."""
    prepare(place / "prepared")
    return place / "prepared"
