"""Contexts and clean texts for the verdict only: do not read them to improve the scanner."""
