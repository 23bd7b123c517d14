"""View definitions: from SQL text to a select-project-join form.

Start in `parse.py` (text to `View`); `view.py` is the form itself, `expressions.py` its scalar expressions.
"""
