"""Tables of code memory in the catalog, and the statements that read and write them."""
