"""Reports for people: plain text that needs no colour and fits the width it is given.

`plan.py`, `estimate.py`, `validation.py` and `catalogues.py` each turn one kind of result into text; `text.py` holds
the sections, tables and units that they share. They compute no figure of their own: a number that a result does not
carry is not shown.
"""
