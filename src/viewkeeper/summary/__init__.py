"""Summary tables: aggregate views in a lattice, maintained by summary-deltas.

Mumick, Quass, Mumick: Maintenance of Data Cubes and Summary Tables in a Warehouse, SIGMOD 1997.
"""
