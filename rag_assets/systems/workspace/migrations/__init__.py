"""Migrations of the tables of pulled sources."""
