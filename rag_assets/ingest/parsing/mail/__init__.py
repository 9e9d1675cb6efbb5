"""Mail, and what is attached to it."""
