"""Laravel: what its conventions and calls say of routes, tables, models and the rest."""
