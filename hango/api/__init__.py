"""The public HTTP API. A request's way:

app.py       composition root: what a process opens, and the ASGI application
edge.py      outermost: security headers, the access log, a 500 without text
routes.py    THE table of routes
endpoint.py  one row: 401, 429, 404, then 413/400/422, then the handler
agents.py, sessions.py, ...   one file a noun: its handlers and their replies
"""
