"""The format `viewkeeper` of Spark: views and their changes, for programs that know nothing else of viewkeeper."""
