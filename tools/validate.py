"""The validator: a document goes in, every rule looks at it, one finding for one fault comes out.

It never raises whatever the document holds, never changes its input, and says the same of the same document every
time. It decides nothing by itself: rules find, `rules/precedence.py` drops what another rule explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec.structs import replace
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from .catalog.unlike_name import unlike_name
from .checkpoint import checked, checkpoint, doing
from .displayed import Displayed, frame
from .engines.names import unjudged_engine
from .errors import MissingFieldError, UnknownNameError
from .frozen import Frozen
from .input.arguments import checks_arguments
from .plan.document import Plan, Relaxation
from .plan.reader import ReadDocument, collector_paused, read_document
from .plan.view import PlanView, as_mapping, as_str
from .rules.base import Finding, Rule, Violation
from .rules.document.schema_mismatch import finding_of
from .rules.evaluation import check_timed
from .rules.precedence import without_explained
from .rules.registry import all_rules, find_rule, rule_order

# Findings of one rule that a report lists: beyond them nobody reads, and a hostile document is all findings.
MAX_FINDINGS_OF_A_RULE = 10_000

# Errors in what a plan states about itself: no figure computed from its graph depends on them.
_OF_WORDS = frozenset({"ST001", "CO006", "CO007"})


class ValidationReport(Displayed, Frozen):
    """What `validate` found: one versioned object for commands, programs, language models and SARIF.

    `relaxations` are the named relaxations that were in force; `brought` those of them that the plan's engine brings
    by itself, each with the reason. `remarks`: what no rule asks for and a person has to know.
    """

    format: Literal["shardwright/validation"] = "shardwright/validation"
    version: Literal["1"] = "1"
    valid: bool
    errors: int
    warnings: int
    violations: tuple[Violation, ...] = ()
    relaxations: tuple[str, ...] = ()
    brought: dict[str, str] = Field(default_factory=dict[str, str])
    remarks: tuple[str, ...] = ()

    def one_line(self) -> str:
        """The verdict, and how much was found."""
        return f"{'valid' if self.valid else 'NOT valid'}, {self.errors:,} errors, {self.warnings:,} warnings"

    def to_pandas(self) -> Any:
        """The findings as a `pandas.DataFrame`.

        Raises InputError: pandas is not installed.
        """
        return frame([violation.model_dump() for violation in self.violations])

    @model_serializer(mode="wrap")
    def _drop_empty(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value or name not in ("brought", "remarks")}


@checks_arguments
def validate(document: Mapping[str, object] | str | Path | Plan) -> ValidationReport:
    """Check a plan against every rule.

    Args:
        document: A `Plan`, an object, a JSON text, or the path of a file.

    Returns:
        `valid`, and every finding with its rule, its place, how to mend it and its source.

    Raises:
        InputError: The file cannot be opened or is too large. Whatever a document holds is reported, never raised.

    Example:
        >>> import shardwright
        >>> shardwright.validate('{"nodes": []}').valid
        False
    """
    with collector_paused():
        read = read_document(document)
        report = validate_read(read)
        read.view.release()
        return report


def validate_read(read: ReadDocument) -> ValidationReport:
    """Check a document that was read already. Without a JSON object only its schema faults are reported."""
    faults = list(_schema_violations(read))
    if read.raw is None:
        return _report(faults)
    return _judged(read.view, faults)


def _judged(view: PlanView, faults: list[Violation]) -> ValidationReport:
    violations = [*faults, *find_violations(view, all_rules())]
    # What could not be judged follows from an error; without one it is reported itself.
    if not any(violation.severity == "error" for violation in violations):
        violations = sorted([*_unjudged(view), *violations], key=_place)
    return _report(violations, view)


def _unjudged(view: PlanView) -> Iterator[Violation]:
    """What rules could not judge, or nobody can estimate, in a plan without errors.

    A missing fact that only times need is a warning where only rules of warnings ask for it.
    """
    schema = find_rule("ST001")
    if not view.unjudged:
        yield from _violations_of(replace(schema, check=check_timed), view)
        if isinstance(view.unjudged.get(schema.id), MissingFieldError):
            return
    if not view.unjudged:
        return
    rules = [find_rule(name) for name in sorted(view.unjudged, key=rule_order)]
    why = view.unjudged[rules[0].id]
    asking = [rule for rule in rules if rule.severity == "error"]
    if not asking and isinstance(why, MissingFieldError):
        asking = rules[:1]
    # The model was read, or ME001 says why not: the unknown fact is the hardware's.
    where = why.path or ("/hardware" if isinstance(why, MissingFieldError | UnknownNameError) else "")
    # What only one rule asks for is reported as that rule's.
    yield (asking[0] if len(asking) == 1 else schema).violation(
        Finding(
            "not-judged",
            f"{'this' if asking and asking[0].severity == 'warning' else 'the plan'} cannot be judged: {why}",
            where,
            value=_at(view.raw, where),
            expected="figures that it can be computed from",
            remedy="state the field that is named, or another value",
        )
    )


def _at(document: Mapping[str, Any], path: str) -> Any:
    """The value at a JSON Pointer of one or two fields; `None` for the whole document."""
    block_name, _, name = path.removeprefix("/").partition("/")
    fields = as_mapping(document.get(block_name))
    return fields.get(name) if name else fields or None


def find_violations(view: PlanView, rules: Iterable[Rule]) -> list[Violation]:
    """Violations of `rules` in the order of a report, without those that a more specific one explains."""
    with collector_paused():
        chosen = list(rules)
        violations = [violation for rule in chosen if not rule.rests_on_estimate for violation in _run(rule, view)]
        judged_view = view.doubted if any(_is_of_graph(violation) for violation in violations) else view
        violations += [violation for rule in chosen if rule.rests_on_estimate for violation in _run(rule, judged_view)]
        return sorted(without_explained(violations), key=_place)


def _is_of_graph(violation: Violation) -> bool:
    """Whether the error lies in the graph, so that figures computed from it would only repeat it."""
    return violation.severity == "error" and violation.rule not in _OF_WORDS and not violation.rule.startswith("EN")


def _run(rule: Rule, view: PlanView) -> list[Violation]:
    # A rule that passes on the distinct parts passes on their copies, so the whole is checked only after a finding.
    if rule.visits != "plan" and view.distinct is not view and not _violations_of(rule, view.distinct):
        return []
    return _violations_of(rule, view)


def _violations_of(rule: Rule, view: PlanView) -> list[Violation]:
    checkpoint()
    doing(f"checking rule {rule.id}")
    violations: list[Violation] = []
    try:
        violations.extend(islice(checked(rule.run(view)), MAX_FINDINGS_OF_A_RULE + 1))
        if len(violations) > MAX_FINDINGS_OF_A_RULE:
            more = f"there are more findings of this rule; the first {MAX_FINDINGS_OF_A_RULE:,} are listed"
            violations[-1] = rule.violation(Finding("further-findings", more, remedy="mend those, then check again"))
    except Exception as error:  # noqa: BLE001 - a rule that cannot cope with a document must not hide the others
        reason = " ".join(str(error).split())[:200]
        message = f"this rule could not be checked: {type(error).__name__}: {reason}"
        crash = rule.violation(
            Finding("not-checked", message, remedy="mend the faults named beside this one, then check again")
        )
        violations.append(crash.model_copy(update={"severity": "error", "fix": "report"}))
    return violations


def _schema_violations(read: ReadDocument) -> Iterable[Violation]:
    rule = find_rule("ST001")
    nodes: Sequence[Any] = read.raw["nodes"] if read.raw and isinstance(read.raw.get("nodes"), list) else ()
    for fault in read.faults:
        yield rule.violation(finding_of(fault, _named_node(fault.path, nodes)))


def _named_node(path: str, nodes: Sequence[Any]) -> tuple[str, ...]:
    """The id of the node that a JSON Pointer runs through; empty if it has none."""
    parts = path.split("/")
    if len(parts) < 3 or parts[1] != "nodes" or not (parts[2].isascii() and parts[2].isdecimal()):
        return ()
    position = int(parts[2])
    node = nodes[position] if position < len(nodes) else None
    name = node.get("id") if isinstance(node, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - raw JSON
    return (name,) if isinstance(name, str) else ()


def _place(violation: Violation) -> tuple[Any, ...]:
    """Sort key: the rule's place, then the place in the document (numbers as numbers)."""
    parts = violation.path.split("/")
    # A longer run of digits is no place in a list.
    numbered = tuple((0, int(part), "") if part.isdecimal() and len(part) < 10 else (1, 0, part) for part in parts)
    return rule_order(violation.rule), numbered


def _remarks(view: PlanView) -> tuple[str, ...]:
    return (*unlike_name(view.model, view.architecture), *unjudged_engine(as_str(view.serving.get("engine"))))


def _report(violations: list[Violation], view: PlanView | None = None) -> ValidationReport:
    errors = sum(violation.severity == "error" for violation in violations)
    return ValidationReport(
        valid=errors == 0,
        errors=errors,
        warnings=len(violations) - errors,
        violations=tuple(violations),
        relaxations=tuple(name for name in get_args(Relaxation) if view is not None and name in view.relaxations),
        brought={} if view is None else {str(name): reason for name, reason in view.brought_relaxations.items()},
        remarks=() if view is None else _remarks(view),
    )
