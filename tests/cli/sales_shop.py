"""A shop in an SQLite database, and the verbs as its user calls them."""

import sqlite3
from contextlib import closing

from click.testing import CliRunner

from viewkeeper.cli.main import viewkeeper


def call(*words: str) -> tuple[int, str]:
    """The exit code of a verb, and what it printed."""
    done = CliRunner().invoke(viewkeeper, [*words], catch_exceptions=False)
    return done.exit_code, done.output


def write(script: str, database: str = "shop.db") -> None:
    """One transaction."""
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(f"BEGIN; {script}; COMMIT;")
