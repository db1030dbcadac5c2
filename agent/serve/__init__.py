"""`shardwright serve`: what programs ask, sessions of a chat, an OpenAI-compatible endpoint and the page, over HTTP.

`app.py` puts it together and `server.py` runs it. What may reach a route is decided before it (`guard.py`,
`bodies.py`); work runs in threads that end when nobody waits for them any more (`jobs.py`); a route answers in one
object or, to whoever accepts it, in events (`answering.py`).
"""
