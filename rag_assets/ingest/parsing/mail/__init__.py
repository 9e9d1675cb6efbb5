"""Mail and its attachments."""
