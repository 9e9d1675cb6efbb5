"""What a document is, by its bytes and by what its source says."""
