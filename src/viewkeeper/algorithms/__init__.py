"""The maintenance algorithms: one file each, all of them listed in `registry.py`.

An algorithm is a generator. It yields effects (`effects.py`) and is resumed with their results; it does no I/O and
knows no clock. `driver.py` runs it, over real sources as over the simulator's.
"""
