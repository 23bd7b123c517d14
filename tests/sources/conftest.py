"""Fixtures of the sources: here, and not imported by each file, so that one server serves them all."""

from mariadb_server import mariadb

__all__ = ["mariadb"]
