"""The example that `viewkeeper init` writes: two small databases, three views over them, and what to do next.

The files are in `example_files/`. The databases are made here, so that the first apply has something to
read; `sell.py` of the example writes to them later, as an application would.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from viewkeeper.errors import UsageError

_FILES = {
    "viewkeeper.yml": "viewkeeper.yml",
    "views/named_orders.sql": "named_orders.sql",
    "views/sales_by_city.sql": "sales_by_city.sql",
    "large_orders.py": "large_orders.txt",
    "sell.py": "sell.txt",
    "README.md": "README.md",
    ".gitignore": "gitignore.txt",
}
"""what they are called in a project, and here, where Python is not to be imported by mistake"""

_DATABASES = {
    "data/shop.db": """
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, item TEXT, amount INTEGER NOT NULL);
        INSERT INTO orders VALUES (1, 7, 'tent', 180), (2, 8, 'rope', 40), (3, 7, 'lamp', 25), (4, 9, 'boots', 120);
    """,
    "data/customers.db": """
        CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL);
        INSERT INTO people VALUES (7, 'Ann', 'Bern'), (8, 'Bo', 'Basel'), (9, 'Cem', 'Bern');
    """,
}


@dataclass(frozen=True)
class Written:
    """The files of the example that were written, and those that were there and stayed."""

    written: list[str]
    kept: list[str]


def write_example(folder: Path, *, force: bool = False) -> Written:
    """Write the example into a folder that is new or empty, or into any by force; nothing is overwritten."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "name one that is not there yet, or is empty")
    there = sorted(path.name for path in folder.iterdir() if path.name != ".git") if folder.is_dir() else []
    if there and not force:
        raise UsageError(
            f"the folder {folder} is not empty: there is {', '.join(there[:3])}{' and more' if there[3:] else ''}",
            "name another, or write beside what is there with --force; nothing is overwritten",
        )
    made = Written([], [])
    try:
        for name in (*_FILES, *_DATABASES):
            path = folder / name
            if path.exists():
                made.kept.append(name)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if name in _DATABASES:
                _make_database(path, _DATABASES[name])
            else:
                path.write_text(_text(_FILES[name]), encoding="utf-8")
            made.written.append(name)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or folder}: {error.strerror}", "name another folder") from error
    return made


def _text(name: str) -> str:
    return files("viewkeeper.project").joinpath("example_files", name).read_text(encoding="utf-8")


def _make_database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"BEGIN; {script} COMMIT;")
