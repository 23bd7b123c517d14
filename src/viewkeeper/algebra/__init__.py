"""Z-sets: bags with signed counts, and the joins of a view over them.

`zset.py` is the protocol. `memory.py` is its engine on the driver, `spark.py` the one on Spark, `adaptive.py` goes from
one to the other by size; `arrow_rows.py` is the way between them. `arrow.py` is the engine in Arrow, with the files
`arrow_*.py` beneath it. `joins.py` is the way from a view to a sequence of joins.
"""
