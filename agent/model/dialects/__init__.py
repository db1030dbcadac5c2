"""How servers read the schemas that they get, a file for each kind."""
