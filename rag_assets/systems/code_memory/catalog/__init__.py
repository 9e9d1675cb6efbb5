"""Tables of code memory in the catalog, and the SQL statements that read and write them."""
