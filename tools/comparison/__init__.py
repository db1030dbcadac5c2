"""What `compare` is made of: the result as data, one side, what changes, the figures, and the words for them."""
