"""Detection of a document's type, by its bytes and by the type that its source declares."""
