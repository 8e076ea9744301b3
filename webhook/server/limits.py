"""What clients of the server may use, and what the server waits for at its start and its end."""

from dataclasses import dataclass

from webhook.audit.writer import MAX_WAITING


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Times in seconds, sizes in bytes.

    Attributes:
        handshake_seconds: for a TLS handshake.
        head_seconds: for each head, from its first byte.
        body_seconds: for a body, unless the request has a timeout.
        unused_seconds: for a connection without a request. API servers keep spare ones and close them after 90 s: if the
            webhook closed one first, a review could choose it at that moment, and would fail.
        idle_seconds: between two requests. API servers keep idle connections for minutes, and a handshake costs more than a
            review.
        write_blocked_seconds: for a peer that does not read its responses.
        close_seconds: for the peer to close the connection, too.
        sweep_seconds: between two looks for connections that have exceeded a limit.
        catch_up_seconds: for a new worker to read the cluster's settings; an API server waits 5 s for a response.
        finish_seconds: after a SIGTERM, for requests in flight.
        first_request_seconds: of these, for a new connection to send a request: an API server does not repeat that one.
        flush_seconds: then, for the readers of the audit logs.
        memory_bytes: of all connections; see webhook.server.budget.
        audit_bytes: of lines that wait for the reader of an audit log.
        open_files: as many as may be open; half of them for connections.
    """

    handshake_seconds: float = 5.0
    head_seconds: float = 10.0
    body_seconds: float = 10.0
    unused_seconds: float = 120.0
    idle_seconds: float = 600.0
    write_blocked_seconds: float = 10.0
    close_seconds: float = 2.0
    sweep_seconds: float = 0.25
    catch_up_seconds: float = 2.0
    finish_seconds: float = 20.0
    first_request_seconds: float = 0.5
    flush_seconds: float = 2.0
    memory_bytes: int = 96 << 20
    audit_bytes: int = MAX_WAITING
    open_files: int = 8192


LIMITS = ServerLimits()
