"""A plan as what runs it: the launch commands of a serving engine, one file a target."""
