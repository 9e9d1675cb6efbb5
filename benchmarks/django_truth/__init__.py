"""Routes and columns of Django applications: those that Django makes, and those derived here."""
