"""PostgreSQL: a logical slot is the stream, a snapshot with its insert LSN is a reading.

Start in `source.py`. `stream.py` follows the slot: `replication_link.py` speaks its protocol, `pgoutput.py` decodes it,
`assembly.py` makes transactions of it. `readings.py` reads, `snapshots.py` tells which streamed transactions a snapshot
does not show.
"""
