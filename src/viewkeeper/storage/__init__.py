"""Self-maintained views: what is stored beside a join so that the changes of its operands are enough to refresh it.

    matview            mat_view.py         the join, and the rows of either side that join with nothing
    outerjoin          mat_out_view.py     the full outer join, which has all of these in one table
    viewcache          view_cache.py       pairs of row ids, and copies of the operands
    partial-join       part_mat_join.py    pairs with the compared columns, ids and compared columns of the rest, copies
    partial-operand    part_mat_op.py      pairs, ids and compared columns of all rows of either side, copies

Joins of more than two operands are left-deep trees of these (`join_tree.py`). Nothing here reads or writes: `tables.py`
says what is asked of whoever stores the structures, and `self_maintained.py` puts a whole view together. Everything is
written over the Z-set protocol, so it runs in memory, in Arrow and on Spark.
"""
