"""Which level of consistency a run reached, judged from its history alone.

`history.py` is what went in and what came out, `judge.py` decides. A cut says how many transactions of each source are
included (`schedule.py`), `source_states.py` computes the view there, and the states of the run are matched to cuts: as
the run claims (`claimed.py`) or by search (`blind.py`). `judgement.py` is the result, `explain.py` its words.

Nothing here is shared with the algorithms that it judges, except the algebra.
"""
