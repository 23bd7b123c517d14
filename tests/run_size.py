"""How much of the suite is run."""

import os

FAST = "VIEWKEEPER_TEST_FAST" in os.environ
"""whether this is `make check-fast`: a few of the random runs, and nothing that starts a program"""
