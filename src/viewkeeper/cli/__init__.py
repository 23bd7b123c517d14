"""The command line: one verb per file, the same word as in the library."""
