"""How long `viewkeeper --help` and the help of each verb take: each in a process of its own, the best of several.

    python benchmarks/help.py

The limit is half a second; the exit code is 1 if one takes longer.
"""

import json
import subprocess
import sys

from viewkeeper.cli.main import VERBS
from viewkeeper.clock import monotonic

LIMIT = 500.0
TRIES = 3


def milliseconds(*words: str) -> float:
    """The best of a few tries: what is slower was somebody else's doing."""
    best = float("inf")
    for _ in range(TRIES):
        begin = monotonic()
        subprocess.run([sys.executable, "-m", "viewkeeper", *words, "--help"], check=True, capture_output=True)
        best = min(best, (monotonic() - begin) * 1000)
    return round(best, 1)


def main() -> None:
    """Measure, and print."""
    taken = {"viewkeeper": milliseconds(), **{verb: milliseconds(verb) for verb in VERBS}}
    slow = [name for name, time in taken.items() if time > LIMIT]
    print(
        json.dumps({"milliseconds": taken, "slowest": max(taken.values()), "limit": LIMIT, "too_slow": slow}, indent=2)
    )
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
