"""A load balancer in place of a Service: one address that forwards each connection to one of several replicas."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Sequence
from itertools import count
from typing import Any, Self


class Balancer(socketserver.ThreadingTCPServer):
    """Forwards connections round-robin while its `with` block runs.

    Attributes:
        port: the port on the loopback address.
        replicas: the ports of the replicas; it may change at any time.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, replicas: Sequence[int]) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.replicas = list(replicas)
        self.port: int = self.socket.getsockname()[1]
        self._turns = count()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Forward a connection, in a thread of its own; the server closes it then."""
        replicas = tuple(self.replicas)  # another thread may change them between the two looks at them
        replica = replicas[next(self._turns) % len(replicas)]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", replica)) as server:
            back = threading.Thread(target=_copy, args=(server, request), daemon=True)
            back.start()
            _copy(request, server)
            back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy a stream until its end, which ends the other direction, too."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
