"""The READMEs: the tables that are made from code, and how pages are taken apart to be compared."""
