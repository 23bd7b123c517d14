"""Views that are plans of operators: created, followed, audited, reloaded and dropped."""
