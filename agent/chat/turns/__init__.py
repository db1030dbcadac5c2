"""The answers of a chat, one module for each kind of turn. A turn stores nothing and prints nothing."""
