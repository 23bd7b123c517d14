"""Spark as the front end: the text of a query becomes an operator tree (`viewkeeper.sql.tree`).

    text → Spark's parser and analyzer → a few of its optimizer's rules → the plan as JSON → Query

Spark resolves names, types, coercions and subqueries; the session is an argument, and pyspark is not imported. What
is read is data: a stored query is read again without a JVM.

`reading.read_query` reads a text, `rendering.to_sql` writes a tree as one, `stored_query` has the form for storing.
"""
