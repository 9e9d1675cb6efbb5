"""Migrations of the tables of team guidelines."""
