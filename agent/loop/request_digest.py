"""A hash of a request to a model, by which a replay notices a different request."""

from __future__ import annotations

import hashlib
import json

from ..model.messages import ModelRequest


def request_digest(request: ModelRequest) -> str:
    """A hash of a request, by which a replay notices a different one."""
    text = json.dumps(request.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
