"""Contexts and clean texts for the verdict alone: whoever improves the scanner reads none."""
