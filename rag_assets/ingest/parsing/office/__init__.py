"""DOCX, PPTX and XLSX, read from their own XML."""
