"""PostgreSQL, MariaDB and SQLite with the tables of `writers.py`, and a warehouse over all three."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from mariadb_server import PASSWORD, USER, MariaDb
from postgres_server import PostgresServer

from viewkeeper.warehouse import Warehouse

SHOP = """
CREATE TABLE orders (id int PRIMARY KEY, cust int, amount int); CREATE INDEX ON orders (cust);
CREATE TABLE lines (id int PRIMARY KEY, ord int, item text); CREATE INDEX ON lines (ord);
INSERT INTO orders SELECT i, i % 20, i FROM generate_series(0, 19) i;
INSERT INTO lines SELECT i, i % 25, 'item ' || i FROM generate_series(0, 19) i;
"""
THREE_WAY = """SELECT o.id AS id, o.amount AS amount, p.id AS person, p.name AS name, r.id AS region, r.name AS place
    FROM shop.orders o JOIN crm.people p ON o.cust = p.id JOIN geo.regions r ON p.region = r.id"""
WITHIN = """SELECT o.id AS id, l.id AS line, l.item AS item, p.id AS person, p.name AS name
    FROM shop.orders o JOIN shop.lines l ON l.ord = o.id JOIN crm.people p ON o.cust = p.id"""


@dataclass
class ThreeDatabases:
    postgres: PostgresServer
    mariadb: MariaDb
    urls: dict[str, str]
    config: dict[str, Any]

    def add_to(self, warehouse: Warehouse, *, install: bool = True) -> None:
        for name, url in self.urls.items():
            warehouse.add_source(name, url, install=install)

    def writers(self, seconds: float, seed: int, pause: float = 0.1) -> "subprocess.Popen[bytes]":
        """The writers, started."""
        script = Path(__file__).with_name("writers.py")
        command = [sys.executable, str(script), json.dumps(self.config), str(seconds), str(seed), str(pause)]
        return subprocess.Popen(command)


@contextmanager
def three_databases(postgres: PostgresServer, mariadb: MariaDb, folder: Path, name: str) -> Iterator[ThreeDatabases]:
    with mariadb.root() as root:
        root.execute(f"DROP DATABASE IF EXISTS `{name}`")
        root.execute(f"CREATE DATABASE `{name}`")
        root.execute(f"GRANT ALL ON `{name}`.* TO {USER}@'%'")
    with mariadb.session(name) as session:
        session.execute("CREATE TABLE people (id int PRIMARY KEY, name varchar(40), region int) ENGINE=InnoDB")
        for number in range(15):
            session.execute("INSERT INTO people VALUES (%s, %s, %s)", (number, f"name {number}", number % 8))
    path = folder / "geo.db"
    geo = sqlite3.connect(path)
    geo.execute("CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT)")
    geo.executemany("INSERT INTO regions VALUES (?, ?)", [(number, f"region {number}") for number in range(8)])
    geo.commit()
    geo.close()
    with postgres.database(name) as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(SHOP)
        config = {
            "shop": {"url": url},
            "crm": {"socket": mariadb.socket, "user": USER, "password": PASSWORD, "database": name},
            "geo": {"path": str(path)},
        }
        urls = {"shop": url, "crm": mariadb.url(name), "geo": f"sqlite:///{path}"}
        try:
            yield ThreeDatabases(postgres, mariadb, urls, config)
        finally:
            with mariadb.root() as root:
                root.execute(f"DROP DATABASE IF EXISTS `{name}`")
