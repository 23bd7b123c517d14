"""Views are loaded, follow their sources, and are audited, reloaded, altered and dropped."""
