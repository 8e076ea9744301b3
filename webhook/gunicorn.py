"""gunicorn with one worker, as the admission server and the console have it."""

import errno
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.util import is_ipv6, parse_address

from webhook.errors import ConfigError

SHARED_MEMORY = "/dev/shm"  # noqa: S108


def ignore_reloads(_: object) -> None:
    """Ignore the signals that start and end workers: files are reloaded without them, and a new worker loses requests."""
    for number in (signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)


SETTINGS: Mapping[str, Any] = {
    "when_ready": ignore_reloads,  # in the master
    "post_worker_init": ignore_reloads,
    "workers": 1,  # one fleet, one registry of metrics, one follower of the log; replicas give the rest
    "control_socket_disable": True,
    # The heartbeat file: on a disk it could stall the worker.
    "worker_tmp_dir": SHARED_MEMORY if Path(SHARED_MEMORY).is_dir() else None,
    "loglevel": "warning",
}


class OneWorker(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn with these settings instead of its command line."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Take gunicorn's settings besides those above."""
        self._settings = {**SETTINGS, **settings}
        super().__init__()

    def load_config(self) -> None:
        """Hand the settings to gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)


def check_address(bind: str, option: str = "--bind") -> str:
    """Bind to an address as a test: gunicorn would try five times, and its message is less clear.

    Returns:
        The address; `0.0.0.0:port` for `[::]:port` where the kernel has no IPv6 (ipv6.disable=1).

    Raises:
        ConfigError: it is invalid or in use.
    """
    try:
        address = parse_address(bind)
        if not isinstance(address, tuple) or ":" not in bind:
            raise ConfigError(f"{bind}: not an address; give {option} HOST:PORT")
        with socket.socket(socket.AF_INET6 if is_ipv6(address[0]) else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT and address[0] == "::":
            return check_address(f"0.0.0.0:{address[1]}", option)
        raise ConfigError(f"{bind}: {error.strerror or error}; name another address with {option} HOST:PORT") from error
    except (RuntimeError, OverflowError) as error:
        raise ConfigError(f"{bind}: not an address; give {option} HOST:PORT") from error
    return bind
