"""The floor of the comparison: a minimal server in gunicorn's asgi worker, which reads the same body and sends fixed bytes."""

import os

BODY = os.environ.get("FLOOR_BODY", "{}").encode()
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]


async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
