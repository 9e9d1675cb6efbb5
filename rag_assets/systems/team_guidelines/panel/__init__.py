"""The pages of team guidelines in the panel, which call the same services as the API."""
