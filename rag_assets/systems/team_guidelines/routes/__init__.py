"""The endpoints of team guidelines, below /api."""
