"""Detection of a document's type, from its bytes and from the type its source declares."""
