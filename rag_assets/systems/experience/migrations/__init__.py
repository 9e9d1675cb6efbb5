"""Migrations of the tables of experience."""
