"""A program that writes to a database and knows nothing of its capture: sqlite_writer.py PATH SEED TRANSACTIONS."""

import sqlite3
import sys

from viewkeeper.clock import seeded


def main(path: str, seed: int, transactions: int) -> None:
    random = seeded(seed)
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("PRAGMA synchronous = normal")
    connection.execute(f"PRAGMA recursive_triggers = {seed % 2}")
    for _ in range(transactions):
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(random.randint(1, 4)):
            key, name, number = random.randrange(100), f"n{random.randrange(100)}", random.randrange(50)
            statement, values = random.choice(
                [
                    ("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", (key, name, number)),
                    ("INSERT OR IGNORE INTO t VALUES (?, ?, ?)", (key, name, number)),
                    ("UPDATE OR REPLACE t SET a = ?, b = b + 1 WHERE id = ?", (name, key)),
                    ("DELETE FROM t WHERE id = ?", (key,)),
                    ("INSERT INTO bag VALUES (?, ?)", (key % 10, b"x" * number)),
                    ("DELETE FROM bag WHERE k = ?", (key % 10,)),
                ]
            )
            connection.execute("SAVEPOINT here")
            connection.execute(statement, values)
            if random.random() < 0.1:
                connection.execute("ROLLBACK TO here")
            connection.execute("RELEASE here")
        connection.execute("ROLLBACK" if random.random() < 0.05 else "COMMIT")
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
