"""Relations that the facts of one text state: symbols, edges and re-exported names."""
