"""The pages of team guidelines in the panel, over the services that the API calls as well."""
