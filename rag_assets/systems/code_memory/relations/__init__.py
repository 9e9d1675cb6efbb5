"""Relations that single texts state: definitions, edges between them, and re-exported names."""
