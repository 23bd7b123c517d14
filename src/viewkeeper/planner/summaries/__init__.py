"""The lattices of summary tables: their names, their order, what each is computed from."""
