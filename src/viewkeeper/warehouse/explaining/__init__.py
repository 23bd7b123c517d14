"""Views in plain words: how each is maintained, why so, what a change costs, and what would be cheaper or stronger.

None of it asks a source or starts Spark. The facts are gathered by `asking.py`, `storing.py` and `summing.py`; what to
advise is in `advice.py`.
"""
