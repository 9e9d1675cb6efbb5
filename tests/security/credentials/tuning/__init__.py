"""Contexts and clean texts that a scanner may be improved on."""
