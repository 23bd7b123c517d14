"""Self-maintained views in the warehouse: created, refreshed from change streams alone, audited, recreated, dropped.

The algorithms are in `viewkeeper/storage`; here they meet stored tables, groups and commits.
"""
