"""Sources: where relations live, and the contract that a warehouse can build on.

One FIFO of transactions and answers per source, in which each answer reflects exactly the transactions that stand
before it. `memory.py` keeps it by construction, `multi_relation.py` builds it over several relations, `sequencer.py`
restores it where messages come by several routes.
"""
