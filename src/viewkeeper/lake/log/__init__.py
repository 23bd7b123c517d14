"""The files that say what is true: commit records, catalogs, sources, halts, pins."""
