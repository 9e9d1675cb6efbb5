"""PDF: blocks, outline, passwords, OCR."""
