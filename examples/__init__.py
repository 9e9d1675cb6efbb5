"""The example handbook, the questions on it, and what builds its binary documents."""
