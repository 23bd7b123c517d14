"""What is on disk: Delta tables, one commit log over all of them, and the one writer."""
