"""Views read with Arrow alone: no Spark, on any machine that sees the files."""
