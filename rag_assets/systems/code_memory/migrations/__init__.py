"""The versions of code memory's tables."""
