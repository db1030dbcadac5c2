"""`shardwright mcp`: what programs ask (`agent/operations`) as tools of the Model Context Protocol, with resources.

`server.py` puts it together; `stdio.py` speaks it over standard streams and `over_http.py` as an ASGI application that
`serve` mounts. A tool is made of each operation (`tools.py`, `schemas.py`); its answer is cut to what a model reads
(`brief_answer.py`), and plan documents stay on the shelf (`shelf.py`), where handles name them.
"""
