"""Checks a repair certificate: replays its patches on what was read and confirms each hash and the final verdict.

It shares nothing with the repair but JSON Patch and the validator, so that a fault of the repair shows here. It proves
that the plan follows from what was read and keeps every rule; nobody can prove that a text in a foreign shape was
understood as its author meant it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import jsonpatch
import jsonpointer

from .errors import InputError
from .frozen import Frozen
from .input.arguments import checks_arguments
from .input.files import read_bounded, shown_path
from .input.strict_json import parse
from .input.strict_values import MAX_WRAPPED_DEPTH, JsonError, check_value
from .plan.reader import MAX_DOCUMENT_BYTES, ReadDocument, read_document, read_text
from .rules.registry import all_rules
from .validate import validate

FORMAT = "shardwright/certificate"
# Paths where a patch changes what the author decided, and paths that are only shown.
_DECIDED = re.compile(r"/(?:(?:model|hardware|workload|precision|policy|serving|strategy)(?:/|$)|nodes/\d+/layers$)")
_NODE = re.compile(r"/nodes/\d+$")
_SHOWN = re.compile(r"/(?:reasoning|construction|performance)(?:/|$)")
# A certificate holds the proposal, the document as read, and the patches.
MAX_CERTIFICATE_BYTES = 3 * MAX_DOCUMENT_BYTES


class Check(Frozen):
    """One thing that the certificate claims, and whether it holds."""

    what: str
    holds: bool
    detail: str = ""


class Verification(Frozen):
    """What the replay found. `confirmed`: all that is claimed holds; `valid`: the plan it ends in keeps every rule.

    `plan_sha256` is of the plan as JSON with sorted keys and no spaces, whatever the layout of its file; `not_checked`
    is what was not compared, or no replay can show.
    """

    format: Literal["shardwright/verification"] = "shardwright/verification"
    version: Literal["1"] = "1"
    confirmed: bool
    valid: bool
    plan_sha256: str = ""
    checks: tuple[Check, ...] = ()
    not_checked: tuple[str, ...] = ()

    @property
    def exit_status(self) -> Literal[0, 1]:
        """0: confirmed, and the plan is valid; 1: the answer is no."""
        return 0 if self.confirmed and self.valid else 1


def verify_file(path: Path, plan: Path | None = None) -> Verification:
    """Check the certificate at `path`, and that it ends in the file `plan`.

    Raises InputError: one of them cannot be read, or the first is no certificate.
    """
    name = shown_path(path)
    try:
        certificate = parse(read_bounded(path, MAX_CERTIFICATE_BYTES, name), name, most_depth=MAX_WRAPPED_DEPTH)
    except JsonError as error:
        raise InputError(f"{error}: not a certificate that `shardwright fix --certificate` wrote") from None
    if not isinstance(certificate, dict):
        raise InputError(f"{name}: not a certificate: not a JSON object")
    return verify(cast("dict[str, Any]", certificate), plan)


@checks_arguments
def verify(certificate: Mapping[str, object], plan: Mapping[str, object] | str | Path | None = None) -> Verification:
    """Replay the certificate of a repair, and check all that it says; it is not changed.

    Args:
        certificate: The object that `shardwright fix --certificate` wrote.
        plan: What is to be the plan that it ends in: an object, a JSON text, or the path of a file. Without it no
            plan is compared, only what the certificate itself holds.

    Raises:
        InputError: It is no certificate, or the plan cannot be read.

    Example:
        >>> import shardwright
        >>> shardwright.verify({"format": "something else"})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        shardwright.tools.errors.InputError: not a certificate: ...
    """
    if certificate.get("format") != FORMAT or certificate.get("version") != "1":
        raise InputError(f"not a certificate: format and version are not {FORMAT!r} and '1'")
    check_value(certificate, "the certificate", most_depth=MAX_WRAPPED_DEPTH)
    replay = _Replay(certificate)
    checks = tuple(replay.checks())
    if plan is None:
        replay.not_checked.append("that a file holds this plan: name the file behind the certificate")
    else:
        checks = (*checks, replay.compared(read_document(plan)))
    return Verification(
        confirmed=all(check.holds for check in checks),
        valid=replay.valid,
        plan_sha256=replay.sha256,
        checks=checks,
        not_checked=tuple(replay.not_checked),
    )


def content_sha256(document: object) -> str:
    """SHA-256 of the document as JSON with sorted keys and no spaces."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def certificate_sha256(certificate: Mapping[str, Any]) -> str:
    """SHA-256 of the whole certificate without this hash, so that claims that no replay can check are covered too."""
    return content_sha256({name: value for name, value in certificate.items() if name != "certificate_sha256"})


def _misnamed(step: Mapping[str, Any], patch: list[Any]) -> str:
    """What is wrong with the rule and the safety class that a fix names; "" if nothing."""
    rule, safety = step.get("rule"), step.get("safety")
    if not isinstance(rule, str) or rule not in {known.id for known in all_rules()}:
        return "it names a rule that there is not"
    paths = [operation.get("path", "") for operation in patch if operation.get("op") != "test"]
    drops = any(operation.get("op") == "remove" and _NODE.match(operation.get("path", "")) for operation in patch)
    if safety == "strategy" and drops:  # it may take a device's last part away
        return ""
    actual = "safe"
    if any(_DECIDED.match(path) and path != "/strategy/gpu_count" for path in paths):
        actual = "strategy"
    elif all(_SHOWN.match(path) for path in paths):
        actual = "display"
    return "" if safety == actual else f"it is called {safety}, and its patch is of the kind {actual}"


def _copied(value: Any) -> Any:
    """A copy of a JSON value: several times faster than a deep copy, which large patches need."""
    return json.loads(json.dumps(value))


class _Replay:
    """The document as it stands after each step; stops at the first step that does not fit."""

    def __init__(self, certificate: Mapping[str, Any]) -> None:
        self.claimed = certificate
        self.document: Any = _copied(certificate.get("read"))
        self.sha256 = content_sha256(self.document)
        self.valid = False
        self.not_checked: list[str] = []

    def checks(self) -> Iterator[Check]:
        yield Check(
            what="the hash of the certificate",
            holds=self.claimed.get("certificate_sha256") == certificate_sha256(self.claimed),
        )
        yield from self._proposal()
        fixes = self.claimed.get("fixes")
        if not isinstance(fixes, list):
            yield Check(what="the list of fixes", holds=False, detail="there is none")
            return
        for number, fix in enumerate(cast("list[Any]", fixes), start=1):
            check = self._step(number, fix)
            yield check
            if not check.holds:
                return
        yield from self._end()

    def _proposal(self) -> Iterator[Check]:
        """Check the proposal's hash and, where it is a plan document already, that it was read as it stands."""
        text = self.claimed.get("proposal")
        if not isinstance(text, str):
            yield Check(what="the proposal", holds=False, detail="there is none")
            return
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        yield Check(what="the hash of the proposal", holds=digest == self.claimed.get("proposal_sha256"))
        reading = self.claimed.get("reading")
        if reading == "translated":
            self.not_checked.append("that the proposal, which is no plan document, was understood as it was meant")
            return
        if reading != "as it stands":
            yield Check(what="how the proposal was read", holds=False, detail="neither as it stands nor translated")
            return
        read = read_text(text)
        yield Check(what="what was read is what the proposal says", holds=read.raw == self.document)

    def _step(self, number: int, fix: Any) -> Check:
        step = cast("dict[str, Any]", fix) if isinstance(fix, dict) else {}
        claim = f"fix {number} ({step.get('rule', '?')}, {step.get('safety', '?')})"
        if step.get("before") != self.sha256:
            return Check(what=claim, holds=False, detail="it begins with another document")
        patch = step.get("patch")
        if not isinstance(patch, list):
            return Check(what=claim, holds=False, detail="it has no patch")
        try:
            # Its values become parts of the document, which the next patches change.
            replayed: Any = jsonpatch.JsonPatch(_copied(patch))
            self.document = replayed.apply(self.document, in_place=True)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, ValueError) as error:
            return Check(
                what=claim, holds=False, detail=f"its patch does not apply: {' '.join(str(error).split())[:200]}"
            )
        fault = _misnamed(step, cast("list[Any]", patch))
        if fault:
            return Check(what=claim, holds=False, detail=fault)
        self.sha256 = content_sha256(self.document)
        if step.get("after") != self.sha256:
            return Check(what=claim, holds=False, detail="it ends in another document")
        return Check(what=claim, holds=True)

    def compared(self, plan: ReadDocument) -> Check:
        """Check that `plan` is the one in which the replay ended: the same JSON, however it is laid out."""
        is_same = not plan.mended and content_sha256(plan.raw) == self.sha256
        return Check(
            what="the plan beside the certificate", holds=is_same, detail="" if is_same else "it is another document"
        )

    def _end(self) -> Iterator[Check]:
        yield Check(what="the hash of the plan", holds=self.claimed.get("plan_sha256") == self.sha256)
        plan: object = self.document
        if not isinstance(plan, dict):
            yield Check(what="the plan", holds=False, detail="it is no JSON object")
            return
        report = validate(cast("dict[str, Any]", plan))
        self.valid = report.valid
        claimed = self.claimed.get("report")
        yield Check(
            what="the report of the validator",
            holds=json.loads(report.model_dump_json()) == claimed,
            detail="" if report.valid else f"{report.errors} errors remain",
        )
