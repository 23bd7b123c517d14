"""What users and programs read: snapshots, SQL, the Spark format, status and measurements."""
