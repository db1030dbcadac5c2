"""What a chat answers, one module for each kind of turn. A turn stores nothing and prints nothing."""
