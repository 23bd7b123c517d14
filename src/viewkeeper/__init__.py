"""viewkeeper keeps materialized views fresh over several autonomous databases, at a consistency level you choose."""
