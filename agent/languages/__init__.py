"""The language that a person is answered in."""
