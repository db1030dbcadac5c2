"""Certificates of repairs with one change: none may be confirmed."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from shardwright.agent.fix_api import fixed
from shardwright.tools.autofix.autofix import Chosen, read_text_anyhow
from shardwright.tools.autofix.result import certificate
from shardwright.tools.errors import InputError
from shardwright.tools.verify import verify

from .mutations import places, put
from .probe import Case, Probe, Refused
from .seeds import seed_plan, seed_text

# The certificates are of a sound plan, of plans that need repair, and of a layout in words.
_BROKEN = ("dense-1", "dense-tp2", "moe-ep2", "dense-pp2-tp2", "disaggregated-tp2", "mla-tp2-ep2-pp2")
_WORDS = '{"model": "Llama-3.1-8B", "gpus": "2xH100", "parallel": "TP2", "isl": 2048, "osl": 256,}'
_REPLACEMENTS = (
    "",
    "x",
    0,
    1,
    -1,
    1.5,
    True,
    False,
    None,
    [],
    {},
    "as it stands",
    "translated",
    "safe",
    "ST001",
    "0" * 64,
)


@cache
def proofs() -> tuple[str, ...]:
    """The original certificates, as JSON."""
    proposals = [seed_text("dense-1"), _WORDS, "no plan at all"]
    for name in _BROKEN:
        document = seed_plan(name)
        document["strategy"]["gpu_count"] = 7
        document["nodes"] = document["nodes"][:-1]
        document["reasoning"] = [{"step": "data_parallelism", "decision": "x"}]
        proposals.append(json.dumps(document))
    certificates: list[str] = []
    for proposal in proposals:
        try:
            certificates.append(json.dumps(certificate(proposal, fixed(read_text_anyhow(proposal), None, Chosen()))))
        except InputError:  # the text without any document has no certificate
            continue
    return tuple(certificates)


def _tampered(document: Any, rng: random.Random) -> str:
    top = rng.choice(list(document))
    # A document inside has thousands of places: the few beside it get a fair share of the attacks.
    near = [(top, *path) for path in places(document[top])] if rng.random() < 0.8 else []
    path = rng.choice(near or [(top,)])
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    action, value = rng.choice(("set", "set", "delete", "add", "turn")), holder[path[-1]]
    if action == "delete":
        del holder[path[-1]]
    elif action == "add" and isinstance(value, dict):
        value[rng.choice(("extra", "", "version"))] = rng.choice(_REPLACEMENTS)
    elif action == "add" and isinstance(value, list):
        value.append(value[0] if value else 1)
    elif action == "turn" and isinstance(value, list) and len(value) > 1:
        value.reverse()
    elif isinstance(value, str) and value and rng.random() < 0.5:
        at = rng.randrange(len(value))
        put(document, path, value[:at] + ("a" if value[at] != "a" else "b") + value[at + 1 :])
    else:
        put(document, path, rng.choice(_REPLACEMENTS))
    return f"{action} {'/'.join(map(str, path))[:120]}"


def certificate_case(seed: int, number: int) -> Case:
    """A certificate with one change, both determined by `seed` and `number`."""
    rng = random.Random(f"certificates:{seed}:{number}")
    original = rng.choice(proofs())
    while True:
        document = json.loads(original)
        about = _tampered(document, rng)
        text = json.dumps(document)
        if text != original:
            return Case("certificates", text, about)


def check_certificate(case: Case, probe: Probe) -> None:
    """Verify the changed certificate of `case`."""
    verification = probe.call("verify", lambda: verify(json.loads(case.text)))
    if isinstance(verification, Refused):
        return
    probe.call("verify --format json", lambda: verification.model_dump_json(indent=2))
    if verification.confirmed:
        kind = "".join("/N" if part.isdigit() else f"/{part}" for part in case.about.partition(" ")[2].split("/")[:3])
        probe.wrong("verify", f"confirms what was changed at {kind}", case.about)
