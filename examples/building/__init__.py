"""How readable sources become PDF, Word, PowerPoint, Excel and e-mail files, the same each time."""
