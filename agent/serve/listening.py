"""The socket that a server listens at, who reaches it, and where a browser finds it."""

from __future__ import annotations

import ipaddress
import socket

from ...tools.errors import InputError

_BACKLOG = 512


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port`, any free one where that is 0.

    Raises:
        InputError: there is no such host on this machine, or the port is in use.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError, IndexError) as error:
        raise InputError(f"--host {host}: no address of this machine: {_reason(error)}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        if hasattr(socket, "SO_REUSEADDR"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        hint = "; name another with --port, or --port 0 for any that is free" if port else ""
        raise InputError(f"port {port} at {host}: {_reason(error)}{hint}") from None
    return listener


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine reaches the socket."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def url_of(listener: socket.socket) -> str:
    """The URL at which a browser on this machine finds the socket."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
