"""SQLite, the embedded default: `SqliteSource` in `source.py`.

change_tables.py    triggers write every change to a log in the database itself
wal.py              commits, read from the -wal file, cut the log into transactions
source.py           a reading and the last number of the log come from one state of the database
"""

from viewkeeper.sources.sqlite.source import SqliteSource

__all__ = ["SqliteSource"]
