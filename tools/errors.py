"""The errors that the tools raise on purpose. Each message is one line: what, where, and how to mend it."""


class ShardwrightError(Exception):
    """Base of every error that a person can mend; the command prints its message and exits with `exit_status`."""

    exit_status: int = 2


class InputError(ShardwrightError, ValueError):
    """The call or the input is wrong: an unreadable file, an unknown name, an impossible figure.

    `path` is the JSON Pointer of what is wrong in a plan document, where whoever raised it knows.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class UnknownNameError(InputError):
    """A model or an accelerator that the catalogue does not have; carries the nearest known names."""

    def __init__(self, kind: str, name: str, nearest: tuple[str, ...]) -> None:
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        super().__init__(f"unknown {kind} {name!r}{hint}")
        self.kind = kind
        self.name = name
        self.nearest = nearest


class MissingFieldError(InputError):
    """A field that the arithmetic needs and the config does not have."""

    def __init__(self, field: str, where: str, why: str = "") -> None:
        super().__init__(f"{where}: field {field!r} is missing{': ' + why if why else ''}")
        self.field = field


class ServiceError(ShardwrightError):
    """A service that was asked for failed: a cluster that cannot be reached, a worker that cannot work."""

    exit_status = 3
