"""How much of this machine's memory the driver may take for one purpose: an eighth.

Spark's own process, what is computed from what is held, and whatever else runs here need the rest.
"""

import os
from pathlib import Path

SHARE = 8
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""of a container, by the versions of the kernel's control groups"""


def share_of_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes of one share."""
    return min([_installed(), *(limit for name in _LIMITS if (limit := _limit(groups / name)) is not None)]) // SHARE


def _installed() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limit(file: Path) -> int | None:
    """What a container may take at most; None if it is not limited."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
