"""What all drawings share: matplotlib, an extra that is imported only to draw, without a display.

The same result gives the same file.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...tools.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png")
_NO_MATPLOTLIB = "--plot needs matplotlib: pip install 'shardwright[plot]'"
_DPI = 150
# No side of a picture has more dots than this: programs refuse to show larger ones.
_MOST_DOTS = 16_000
# No date, no random ids.
_SETTINGS = {"svg.hashsalt": "shardwright", "svg.fonttype": "none", "font.size": 9.0}


def ready_to_plot(path: Path) -> None:
    """Whether a picture can be drawn for `path`, before anything is computed.

    Raises:
        InputError: its ending names no format, or matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--plot {path.name!r}: the file must end in {' or '.join(FORMATS)}")
    _matplotlib()


def picture_bytes(inches: tuple[float, float], suffix: str, draw: Callable[[Figure], None]) -> bytes:
    """The picture that `draw` draws, as a file of the format that `suffix` (.svg, .png) names.

    Raises:
        InputError: matplotlib is not installed.
    """
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        picture = Figure(figsize=inches, layout="constrained")
        draw(picture)
        out = io.BytesIO()
        metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
        dots = min(_DPI, _MOST_DOTS / max(inches))
        picture.savefig(out, format=suffix.removeprefix("."), dpi=dots, metadata=metadata)
    return out.getvalue()


def plain(text: str) -> str:
    """`text` as it is to be drawn: a dollar sign is no formula."""
    return text.replace("$", r"\$")


def _matplotlib() -> Any:
    try:
        return import_module("matplotlib")
    except ImportError:
        raise InputError(_NO_MATPLOTLIB) from None
