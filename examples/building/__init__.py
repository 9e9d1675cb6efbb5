"""Builds PDF, Word, PowerPoint, Excel and e-mail files from readable sources, reproducibly."""
