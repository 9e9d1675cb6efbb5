"""The worker processes that parse documents, and their pool."""
