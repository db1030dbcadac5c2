"""The operations that a program asks for over a wire: typed questions, answers of the library, texts for people.

`serve` makes a route of each and `mcp` a tool of each, so that both know the same and neither says it again. Texts,
objects and names go in, never a path: nothing that is asked for opens a file (`tools/files.py`, `without_files`).
"""
