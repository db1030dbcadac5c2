"""A plan as what runs it: the launch commands of a serving engine (one file an engine), in a form (one file a form)."""
