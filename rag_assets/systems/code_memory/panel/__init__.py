"""Panel pages for admins of code memory."""
