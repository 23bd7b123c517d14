"""The load of the benchmark: so many transactions, and each of them changes a row."""

from pathlib import Path

from sustained import GROUPS, TABLE, Sqlite, Writer, amount


def test_every_transaction_of_the_load_changes_one_row_however_long_it_lasts(tmp_path: Path) -> None:
    rows = 50
    database = Sqlite(tmp_path, None)
    database.execute(f"CREATE TABLE {TABLE} (id INTEGER PRIMARY KEY, shop INTEGER NOT NULL, amount INTEGER NOT NULL)")
    insert = f"INSERT INTO {TABLE} VALUES (?, ?, ?)"
    database.many(insert, ((number, number % GROUPS, amount(number)) for number in range(rows)))
    writer = Writer(database, rows, 1.0)
    assert [writer.transaction(number) for number in range(20 * rows)] == [1] * 20 * rows
    database.connection.close()
