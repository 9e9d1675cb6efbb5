"""The pages of the panel for admins of experience."""
