"""Which storage a self-maintained view has, and why."""
