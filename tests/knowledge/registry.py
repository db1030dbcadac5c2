"""The computations behind the worked numbers of the knowledge base, by name.

A figure in `knowledge/*.md` that is followed by `<!--= NAME ARG… -->` is recomputed by the function registered as NAME.
A function takes the marker's arguments as text and returns the figure as it is printed in the document.
"""

from __future__ import annotations

from collections.abc import Callable

Computation = Callable[..., str]

_COMPUTATIONS: dict[str, Computation] = {}


def number(name: str) -> Callable[[Computation], Computation]:
    """Register the decorated function as the computation `name`; a second one of the same name is an error."""

    def register(function: Computation) -> Computation:
        if name in _COMPUTATIONS:
            homes = f"{_COMPUTATIONS[name].__module__} and {function.__module__}"
            raise ValueError(f"number {name!r} is computed twice: {homes}")
        _COMPUTATIONS[name] = function
        return function

    return register


def computed(name: str, *arguments: str) -> str:
    """The figure that `name` gives for `arguments`, as text; KeyError if `name` is not registered."""
    return _COMPUTATIONS[name](*arguments)


def computation_names() -> tuple[str, ...]:
    """All registered names, sorted."""
    return tuple(sorted(_COMPUTATIONS))
