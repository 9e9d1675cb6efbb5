"""Relations that single texts state: definitions, edges between them, and names they pass on."""
