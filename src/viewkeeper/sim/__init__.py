"""A seeded world for the production algorithms: sources, channels, faults.

`scenario.py` says what to simulate, `random_views.py` and `random_updates.py` fill it from the seed, `world.py` is the
world, `run.py` drives it and records the history, `examples.py` has the worked examples of the papers. `live_world.py`
and `live_run.py` do the same around a group of the live mediator.
"""
