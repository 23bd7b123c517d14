"""How a view is to be maintained: decided from its definition, its properties and what is known of the sources."""
