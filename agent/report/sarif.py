"""A validation report as SARIF 2.1.0, the format that code scanners and editors exchange results in.

Source: OASIS SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html). A place in a plan is a
JSON Pointer, given as a logical location, and a line where the plan was written out in full: one that was read out of
prose or the compact form has no such places. It turns what a report holds into another shape and judges nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from ...tools.plan.performance import Sparse
from ...tools.plan.pointer_lines import line_of
from .edits import example_text

if TYPE_CHECKING:
    from ...tools.rules.base import Rule, Violation
    from ...tools.validate import ValidationReport

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# The key says how the fingerprint was made, so that another way of making it gets another key (SARIF §3.27.17).
FINGERPRINT = "shardwrightFinding/v1"
_MAX_RELATED = 64

Level = Literal["error", "warning"]


class _Sarif(Sparse):
    """An object of the format: names in camel case, what is absent left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class Message(_Sarif):
    """Text for people, plain and as Markdown."""

    text: str
    markdown: str | None = None


class RuleDefaults(_Sarif):
    """How grave a rule is where a result does not say otherwise."""

    level: Level


class ReportingDescriptor(_Sarif):
    """One rule of the validator."""

    id: str
    name: str
    short_description: Message
    full_description: Message
    help: Message
    default_configuration: RuleDefaults
    properties: dict[str, Any]


class Driver(_Sarif):
    """The validator itself with all its rules."""

    name: str
    version: str
    rules: tuple[ReportingDescriptor, ...]


class Tool(_Sarif):
    """What made the run."""

    driver: Driver


class ArtifactLocation(_Sarif):
    """Where the plan is: a URI, or a description where it has none (standard input)."""

    uri: str | None = None
    description: Message | None = None


class Region(_Sarif):
    """The line at which what is meant begins."""

    start_line: int


class PhysicalLocation(_Sarif):
    """The document of a finding, and where in it."""

    artifact_location: ArtifactLocation
    region: Region | None = None


class LogicalLocation(_Sarif):
    """A place inside the document: `fully_qualified_name` is its JSON Pointer, or the id of a node."""

    name: str
    fully_qualified_name: str
    kind: str


class Location(_Sarif):
    """A place: the document and what of it is meant."""

    physical_location: PhysicalLocation | None = None
    logical_locations: tuple[LogicalLocation, ...]
    message: Message | None = None


class Result(_Sarif):
    """One finding."""

    rule_id: str
    rule_index: int
    level: Level
    message: Message
    locations: tuple[Location, ...]
    related_locations: tuple[Location, ...] | None = None
    partial_fingerprints: dict[str, str]
    properties: dict[str, Any]


class Artifact(_Sarif):
    """The document that was checked."""

    location: ArtifactLocation


class Invocation(_Sarif):
    """That the check ran to its end."""

    execution_successful: bool


class Run(_Sarif):
    """One check of some documents."""

    tool: Tool
    invocations: tuple[Invocation, ...]
    artifacts: tuple[Artifact, ...]
    results: tuple[Result, ...]
    column_kind: Literal["unicodeCodePoints"] = "unicodeCodePoints"
    properties: dict[str, Any]


class SarifLog(_Sarif):
    """A SARIF file."""

    schema_uri: str = Field(default=SARIF_SCHEMA, alias="$schema")
    version: Literal["2.1.0"] = SARIF_VERSION
    runs: tuple[Run, ...]

    def to_json(self) -> str:
        """The file's text."""
        return self.model_dump_json(by_alias=True, indent=2)


class Checked(Struct, frozen=True):
    """A document that was checked, and its URI (`None`: standard input).

    `text`: what it was read from, where the places of the report are in it.
    """

    report: ValidationReport
    uri: str | None
    text: str | None = None

    @property
    def location(self) -> ArtifactLocation:
        """Where the document is."""
        stdin = Message(text="standard input")
        return ArtifactLocation(uri=self.uri, description=stdin if self.uri is None else None)


def sarif_log(checked: Sequence[Checked], *, version: str) -> SarifLog:
    """The reports of `checked` as a log of one run."""
    from ...tools.rules.registry import all_rules

    rules = all_rules()
    index = {rule.id: position for position, rule in enumerate(rules)}
    results: list[Result] = []
    for document in checked:
        seen: Counter[str] = Counter()
        for violation in document.report.violations:
            fingerprint = _fingerprint(violation)
            seen[fingerprint] += 1
            results.append(_result(violation, index[violation.rule], document, f"{fingerprint}:{seen[fingerprint]}"))
    driver = Driver(name="shardwright", version=version, rules=tuple(_descriptor(rule) for rule in rules))
    run = Run(
        tool=Tool(driver=driver),
        invocations=(Invocation(execution_successful=True),),
        artifacts=tuple(Artifact(location=document.location) for document in checked),
        results=tuple(results),
        properties={
            "relaxations": sorted({name for document in checked for name in document.report.relaxations}),
            "valid": all(document.report.valid for document in checked),
        },
    )
    return SarifLog(runs=(run,))


def _descriptor(rule: Rule) -> ReportingDescriptor:
    examples = {"An example that breaks it": rule.bad, "An example that passes": rule.good}
    shown = [f"{title}: {example_text(example)}" for title, example in examples.items()]
    text = "\n\n".join([rule.rationale, f"To mend: {rule.remedy}.", *shown])
    markdown = "\n\n".join([rule.rationale, f"**To mend:** {rule.remedy}.", *(f"- {line}" for line in shown)])
    return ReportingDescriptor(
        id=rule.id,
        name="".join(word[:1].upper() + word[1:] for word in rule.name.replace("-", " ").split()),
        short_description=Message(text=rule.name),
        full_description=Message(text=rule.requirement),
        help=Message(text=text, markdown=markdown),
        default_configuration=RuleDefaults(level=rule.severity),
        properties={"source": rule.source, "fix": rule.fix, "tags": [rule.id[:2]]},
    )


def _result(violation: Violation, index: int, checked: Checked, fingerprint: str) -> Result:
    pointer = LogicalLocation(
        name=violation.path.rpartition("/")[2] or "document",
        fully_qualified_name=violation.path,
        kind="object" if violation.path.count("/") in (0, 2) else "property",
    )
    region = None if checked.text is None else Region(start_line=line_of(checked.text, violation.path))
    place = PhysicalLocation(artifact_location=checked.location, region=region)
    nodes = tuple(_node_location(node) for node in tuple(dict.fromkeys(violation.nodes))[:_MAX_RELATED])
    return Result(
        rule_id=violation.rule,
        rule_index=index,
        level=violation.severity,
        message=Message(text=violation.message),
        locations=(Location(physical_location=place, logical_locations=(pointer,)),),
        related_locations=nodes or None,
        partial_fingerprints={FINGERPRINT: fingerprint},
        properties={**_facts(violation), "pointer": violation.path},
    )


def _node_location(node: str) -> Location:
    return Location(
        logical_locations=(LogicalLocation(name=node, fully_qualified_name=node, kind="object"),),
        message=Message(text=f"node {node}"),
    )


def _facts(violation: Violation) -> Mapping[str, Any]:
    """What SARIF has no field for, under the names of the report."""
    facts = violation.model_dump(
        mode="json", include={"message_id", "nodes", "edges", "value", "expected", "remedy", "fix", "source"}
    )
    return {name: value for name, value in facts.items() if value not in (None, [], "")}


def _fingerprint(violation: Violation) -> str:
    """A mark of the finding that outlasts a reordered document and changed figures: its rule, nodes and edges.

    Where it names no node, the place in the document stands for them.
    """
    places: list[Any] = [violation.rule, sorted(violation.nodes), sorted(violation.edges)]
    if not violation.nodes and not violation.edges:
        places.append(violation.path)
    return hashlib.sha256(json.dumps(places).encode()).hexdigest()[:32]
