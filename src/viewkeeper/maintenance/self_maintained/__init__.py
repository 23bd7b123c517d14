"""Self-maintained views: their structures loaded, followed and compared. Their storages are in `viewkeeper.storage`."""
