"""Delta tables of views: written by commits, and read by Spark and by Arrow."""
