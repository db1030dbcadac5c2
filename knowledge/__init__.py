"""What a proposer must know to write right plans, as sections of Markdown that people, models and `explain` read.

The text lies in the `.md` files beside this one; the modules read, choose and search it. Nothing here needs a network.
"""
