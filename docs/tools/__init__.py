"""The generators of documentation: pages written from the code."""
