"""The live mediator: the algorithms of `algorithms/`, driven over real sources.

stream.py        the events of one source, and a place in them for every group
feed.py          one source at work: its stream, and readings of it
channel.py       the FIFO between a source and a group: transactions, and answers in their place among them
maintained.py    one view: its algorithm, and a wrapper for every source with several of its relations
alignment.py     the states of several views as one sequence
derived.py       views over views of the group
without_quiet.py what takes over from an algorithm that waits for quiet, where there is none
group.py         views that are kept together
known_rows.py    what need not be asked again
statistics.py    how much comes back from where
mediator.py      all feeds and all groups
base_image.py    relations as they were at a vector, for loads, audits and histories
choice.py        the algorithm for a view
report.py        what is going on
"""
