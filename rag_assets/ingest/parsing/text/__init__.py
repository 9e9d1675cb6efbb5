"""Formats with the source as text: offsets are offsets into the file."""
