"""The processes in which documents are parsed, and the pool that hands them out."""
