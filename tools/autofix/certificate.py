"""The certificate of a repair: all that a checker needs to replay it without the code that made it."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from typing import Any

from ..checkpoint import checked
from ..errors import InputError
from ..plan.reader import read_text
from ..validate import validate
from ..verify import FORMAT, certificate_sha256, content_sha256
from .edits import Patched
from .result import FixResult


def certificate(proposal: str, result: FixResult) -> dict[str, Any]:
    """The certificate of `result`, which `autofix` gave for the text `proposal`, as JSON values.

    Raises:
        InputError: nothing was read of the text.
    """
    document: Any = result.read
    if document is None:
        raise InputError("nothing was read that could be repaired, so there is nothing to certify")
    fixes: list[dict[str, Any]] = []
    digest = content_sha256(document)
    patched = Patched(document)
    for fix in checked(result.fixes, 1):
        patch = [dict(operation) for operation in fix.patch]
        patched.apply(patch)
        after = content_sha256(patched.document)
        fixes.append(
            {
                "rule": fix.rule, "safety": fix.safety, "description": fix.description, "patch": patch,
                "before": digest, "after": after,
            }
        )  # fmt: skip
        digest = after
    found: dict[str, Any] = {
        "format": FORMAT,
        "version": "1",
        "shardwright": version("shardwright"),
        "proposal": proposal,
        "proposal_sha256": hashlib.sha256(proposal.encode("utf-8", "surrogatepass")).hexdigest(),
        "reading": "as it stands" if read_text(proposal).raw == result.read else "translated",
        "read": result.read,
        "fixes": fixes,
        "plan_sha256": digest,
        "report": json.loads(validate(patched.document).model_dump_json()),
    }
    return {**found, "certificate_sha256": certificate_sha256(found)}
