"""What the sources that are files have in common: typed columns, reading, joining and differencing immutable Parquet.

content     a set of files, read as one table
fetching    an answer over contents: rows that match keys, joins
difference  new content - old content, as signed rows
on_spark    the same joins and differences where they are large
durable     small files that are there whole or not at all
"""
