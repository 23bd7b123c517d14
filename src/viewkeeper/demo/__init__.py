"""A small retail chain in three databases, written to while views over them are maintained: `viewkeeper demo`.

    retail          the tables, and what is in them at first: a function of the seed
    business        what happens then: a sequence of transactions for each database, a function of the seed
    databases       SQLite, PostgreSQL and MariaDB as somebody's databases: made, filled, written to, read
    writing         the process that commits those transactions, spread over some seconds; `writers` starts and stops it
    servers         a private PostgreSQL and MariaDB, each under a `guard`, a process that ends it with the demo
    views           what is maintained
    demonstration   all of it, step by step
    freshness       how long a commit of a database took to be in the views
    recomputing     how long Spark takes to compute the views from nothing

Of the rest of viewkeeper it uses what any program may use, and the commit log.
"""
