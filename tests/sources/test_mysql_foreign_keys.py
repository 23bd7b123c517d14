"""Tables whose rows MariaDB changes by itself are refused, for a user with the documented privileges and no more.

The server's triggers are the counterpart: what they change is in the log, and is captured.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exactness import Recorded
from mariadb_server import MariaDb, Session

from viewkeeper.errors import UnknownTable
from viewkeeper.sources.base import Disruption, Request
from viewkeeper.sources.mysql.foreign_keys import Acting, acting_in
from viewkeeper.sources.mysql.source import MySqlSource

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "my-mysql.md"
DATABASE, USER, PASSWORD = "cascades_test", "documented", "pw"
Open = Callable[..., MySqlSource]


@pytest.fixture
def root(mariadb: MariaDb) -> Iterator[Session]:
    """An administrator; the user has exactly the privileges of the how-to page."""
    (block,) = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    block = block.replace("viewkeeper", USER).replace("'...'", f"'{PASSWORD}'").replace("shop.", f"{DATABASE}.")
    with mariadb.root() as session:
        session.execute("CREATE OR REPLACE DATABASE elsewhere_test")
        session.execute("CREATE TABLE elsewhere_test.country (id INT PRIMARY KEY)")
        session.execute(f"CREATE OR REPLACE DATABASE {DATABASE}")
        session.execute(f"USE {DATABASE}")
        session.execute("CREATE TABLE customer (id INT PRIMARY KEY, nr INT UNIQUE)")
        for statement in filter(None, (part.strip() for part in block.split(";"))):
            session.execute(statement)
        yield session
        session.execute(f"DROP USER {USER}")
        session.execute(f"DROP DATABASE {DATABASE}")
        session.execute("DROP DATABASE elsewhere_test")


@pytest.fixture
def opened(mariadb: MariaDb) -> Iterator[Open]:
    sources: list[MySqlSource] = []

    def open_one(*tables: str) -> MySqlSource:
        url = mariadb.url(DATABASE, user=USER, password=PASSWORD)
        sources.append(MySqlSource(Request("s", url, "cascades", tables or None)))
        return sources[-1]

    yield open_one
    for source in sources:
        source.close()


ACTIONS = {
    "REFERENCES customer (id) ON DELETE CASCADE": "ON DELETE CASCADE",
    "REFERENCES customer (id) ON DELETE SET NULL": "ON DELETE SET NULL",
    "REFERENCES customer (id) ON UPDATE CASCADE": "ON UPDATE CASCADE",
    "REFERENCES customer (nr) ON UPDATE SET NULL": "ON UPDATE SET NULL",
    "REFERENCES elsewhere_test.country (id) ON DELETE RESTRICT ON UPDATE CASCADE": "ON UPDATE CASCADE",
}


@pytest.mark.parametrize("reference", ACTIONS)
def test_a_table_that_a_foreign_key_changes_is_refused(root: Session, opened: Open, reference: str) -> None:
    root.execute(
        f"CREATE TABLE orders (id INT PRIMARY KEY, customer INT, CONSTRAINT cut FOREIGN KEY (customer) {reference})"
    )
    with pytest.raises(UnknownTable, match=re.escape(f"foreign key cut ({ACTIONS[reference]})")) as refused:
        opened("orders")
    assert f"ALTER TABLE `{DATABASE}`.`orders` DROP FOREIGN KEY `cut`" in refused.value.hint
    with pytest.raises(UnknownTable, match=r"s\.orders"):
        opened()
    assert list(opened("customer").relations) == ["s.customer"], "the parent is changed by statements alone"


def test_every_table_of_a_chain_is_refused_by_its_own_key(root: Session, opened: Open) -> None:
    root.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, customer INT,"
        " FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE)"
    )
    root.execute(
        "CREATE TABLE item (id INT PRIMARY KEY, o INT, FOREIGN KEY (o) REFERENCES orders (id) ON DELETE CASCADE)"
    )
    for table in ("orders", "item"):
        with pytest.raises(UnknownTable, match="ON DELETE CASCADE"):
            opened(table)


def test_a_foreign_key_that_only_refuses_is_captured(root: Session, opened: Open) -> None:
    root.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, customer INT"
        " COMMENT 'CONSTRAINT `x` FOREIGN KEY (a) REFERENCES b (c) ON DELETE CASCADE',"
        " changed TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
        " `, FOREIGN KEY (a) ON DELETE CASCADE` INT,"
        " FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE RESTRICT ON UPDATE NO ACTION)"
    )
    source = opened("orders")
    assert not [finding for finding in source.doctor() if finding.fatal]


def test_a_table_whose_definition_is_hidden_is_refused_with_the_grant(root: Session, opened: Open) -> None:
    """Privileges on columns alone show neither the definition nor the other columns."""
    root.execute("CREATE TABLE orders (id INT PRIMARY KEY, amount INT)")
    root.execute(f"REVOKE SELECT ON {DATABASE}.* FROM {USER}")
    root.execute(f"GRANT SELECT (id) ON {DATABASE}.orders TO {USER}")
    with pytest.raises(UnknownTable, match="may not read") as refused:
        opened("orders")
    assert refused.value.hint == f"GRANT SELECT ON `{DATABASE}`.`orders` TO `{USER}`"
    root.execute(f"GRANT SELECT ON {DATABASE}.orders TO {USER}")
    source = opened("orders")
    root.execute(f"REVOKE SELECT ON {DATABASE}.orders FROM {USER}")
    root.execute(f"GRANT SELECT (id) ON {DATABASE}.orders TO {USER}")
    fixes = [finding.fix for finding in source.doctor() if finding.fatal]
    assert f"GRANT SELECT ON `{DATABASE}`.`orders` TO `{USER}`" in fixes


def test_a_cascading_key_that_is_added_later_halts_and_is_found(root: Session, opened: Open) -> None:
    root.execute("CREATE TABLE orders (id INT PRIMARY KEY, customer INT)")
    source = opened("orders")
    with Recorded(source) as recorded:
        root.execute("INSERT INTO customer VALUES (1, 1)")
        root.execute("INSERT INTO orders VALUES (1, 1)")
        root.execute(
            "ALTER TABLE orders ADD CONSTRAINT cut FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE"
        )
        root.execute("DELETE FROM customer")
        recorded.catch_up()
    (altered,) = [event for event in recorded.events if isinstance(event, Disruption)]
    assert (altered.relation, altered.columns) == ("s.orders", None)
    (finding,) = [finding for finding in source.doctor() if finding.fatal]
    assert "is changed by its foreign key cut (ON DELETE CASCADE)" in finding.what
    with Recorded(source) as again:
        again.catch_up()
    assert any("cut" in event.reason for event in again.events if isinstance(event, Disruption))
    with pytest.raises(UnknownTable, match="cut"):
        opened("orders")


def test_what_triggers_change_is_captured(root: Session, opened: Open) -> None:
    root.execute("CREATE TABLE orders (id INT PRIMARY KEY, customer INT)")
    root.execute("CREATE TABLE deleted (id INT PRIMARY KEY)")
    root.execute("CREATE TRIGGER cut AFTER DELETE ON customer FOR EACH ROW DELETE FROM orders WHERE customer = OLD.id")
    root.execute("CREATE TRIGGER noted AFTER DELETE ON orders FOR EACH ROW INSERT INTO deleted VALUES (OLD.id)")
    root.execute("INSERT INTO customer VALUES (1, 1), (2, 2)")
    root.execute("INSERT INTO orders VALUES (10, 1), (11, 1), (12, 2)")
    with Recorded(opened("orders", "deleted")) as recorded:
        root.execute("DELETE FROM customer WHERE id = 1")
        recorded.catch_up()
        (transaction,) = recorded.transactions
    recorded.check()
    assert sorted((change.relation, change.row, change.count) for change in transaction.changes) == [
        ("s.deleted", (10,), 1),
        ("s.deleted", (11,), 1),
        ("s.orders", (10, 1), -1),
        ("s.orders", (11, 1), -1),
    ]


def test_definitions_are_read_token_by_token() -> None:
    definition = """CREATE TABLE `c` (
      `a` int(11) DEFAULT NULL COMMENT 'it''s \\' FOREIGN KEY (`x`) ON DELETE CASCADE',
      `t` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
      `FOREIGN KEY ``(a) ON DELETE CASCADE` int(11),
      CONSTRAINT `f``k` FOREIGN KEY (`a`, `b`) REFERENCES `e`.`ON` (`i, d`, `j`) ON DELETE SET NULL ON UPDATE CASCADE,
      CONSTRAINT `safe` FOREIGN KEY (`a`) REFERENCES `p` (`id`) ON DELETE NO ACTION,
      CONSTRAINT `ck` CHECK (`a` <> ', ON DELETE CASCADE')
    ) ENGINE=InnoDB COMMENT='ON DELETE CASCADE'"""
    assert list(acting_in(definition)) == [Acting("f`k", "DELETE", "SET NULL"), Acting("f`k", "UPDATE", "CASCADE")]
