"""What makes the documentation: pages written from the code."""
