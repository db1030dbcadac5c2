"""How servers of one kind read the schemas that they are sent, a file a kind."""
