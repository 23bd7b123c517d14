"""MariaDB and MySQL as sources: the binary log is the stream, a consistent snapshot between two places of it a reading.

source.py        the source itself                    doctor.py        what capture needs, and what fixes it
binlog.py        the stream of transactions           readings.py      rows that are exact at a place of the log
row_images.py    rows as the log writes them          history.py       what the stream passed lately
statements.py    statements in the log                keys.py          keys on their way to the server
catalog.py       tables that can be captured          connections.py   connections, and errors without drivers
types.py         columns: one value in log and answer charsets.py      text as bytes
"""
