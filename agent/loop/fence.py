"""The boundary round data in a prompt."""

from __future__ import annotations

import re
import secrets

# Matches a boundary: two equal runs differ in these letters alone.
FENCE = re.compile(r"\bdata-[0-9a-f]{16}\b")


def random_fence() -> str:
    """A boundary that no author of the data can have known."""
    return f"data-{secrets.token_hex(8)}"
