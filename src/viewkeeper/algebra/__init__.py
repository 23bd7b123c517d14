"""Z-sets: bags with signed counts, and the joins of a view over them.

`zset.py` is the protocol, `memory.py` its engine on the driver, `joins.py` the way from a view to a sequence of joins.
"""
