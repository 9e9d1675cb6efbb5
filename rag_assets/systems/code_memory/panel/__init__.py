"""The pages of the panel for admins of code memory."""
