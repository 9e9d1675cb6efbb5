"""The example handbook, questions about it, and the code that builds its binary documents."""
