"""Benchmarks are scripts beside the package; what they share is imported from their folder."""

import sys
from pathlib import Path

# At the end: some scripts have names that others may want.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
