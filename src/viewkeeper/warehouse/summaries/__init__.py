"""Summary tables in a warehouse: stored, followed, refreshed, explained. What they are is in `viewkeeper.summary`."""
