"""A language model reads the request, tools check each fact of its reading and lay it beside the rules' own."""
