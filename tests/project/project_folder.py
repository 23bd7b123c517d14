"""Projects in a folder of a test: files by name and content."""

import sqlite3
import textwrap
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

SHOP = "sources:\n  shop: {url: 'sqlite:///shop.db', install: true}\n"
BIG = "CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders WHERE amount > 9"


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Writes them, with the indentation of the test taken away."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content), encoding="utf-8")
    return folder


def make_shop(path: Path) -> None:
    """A database with two tables."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER, amount INTEGER);"
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);"
            "INSERT INTO orders VALUES (1, 7, 10); INSERT INTO people VALUES (7, 'Ann');"
        )
