"""Formats whose source is the text: offsets are offsets into the file."""
