"""Summary tables: loaded, refreshed and recomputed. What they are is in `viewkeeper.summary`."""
