"""Contexts and clean texts on which a scanner may be improved."""
