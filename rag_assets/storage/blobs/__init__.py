"""Blobs: uploaded files as received, named by the hash of their content."""
