"""Blobs: uploaded files as they came, named by the hash of their content."""
