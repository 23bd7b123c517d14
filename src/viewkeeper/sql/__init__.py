"""View definitions: from SQL text to the form in which a view is maintained.

Start in `parse_summary.py` (text to join, summary table or family) and `parse.py` (text to join). `view.py` is the
select-project-join form, `summary_view.py` the aggregate one, `expressions.py` their scalar expressions.
"""
