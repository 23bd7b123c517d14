"""Where views are stored: Delta Lake tables, written and read by Spark, committed together."""
