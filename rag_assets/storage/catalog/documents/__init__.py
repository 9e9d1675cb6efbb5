"""Documents: their rows and status, their versions in the index, and their removal."""
