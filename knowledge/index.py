"""All sections of the knowledge base, read once on first use: by place, by id, by rule."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path

from msgspec import Struct

from ..tools.errors import UnknownNameError
from .reader import KnowledgeError, read_document
from .section import Document, Section

FOLDER = Path(__file__).resolve().parent

# The files in reading order; a file missing here is an error.
FILES = (
    "README.md",
    "01_model_semantics/attention_structure.md",
    "01_model_semantics/kv_cache_semantics.md",
    "03_inference_phases/prefill_phase.md",
    "03_inference_phases/decode_phase.md",
    "04_parallel_primitives/tensor_parallelism.md",
    "04_parallel_primitives/sequence_parallelism.md",
    "04_parallel_primitives/pipeline_parallelism.md",
    "04_parallel_primitives/expert_parallelism.md",
    "04_parallel_primitives/dp_in_inference.md",
    "05_parallelism_by_module/attention_parallelism.md",
    "05_parallelism_by_module/ffn_parallelism.md",
    "05_parallelism_by_module/moe_parallelism.md",
    "05_parallelism_by_module/embedding_and_lm_head.md",
    "06_execution_and_scheduling/pipeline_scheduling.md",
    "06_execution_and_scheduling/microbatching.md",
    "06_execution_and_scheduling/overlap_compute_communication.md",
    "06_execution_and_scheduling/synchronization_points.md",
    "07_hardware_and_system_constraints/memory_constraints.md",
    "07_hardware_and_system_constraints/interconnect_topology.md",
    "07_hardware_and_system_constraints/latency_vs_throughput.md",
    "07_hardware_and_system_constraints/accelerator_specific_notes.md",
    "08_dag_construction_primitives.md",
    "09_metrics_and_objectives.md",
    "10_common_failure_modes.md",
    "11_dag_validation_and_autofix.md",
)


class KnowledgeBase(Struct, frozen=True, dict=True):
    """The documents in reading order."""

    documents: tuple[Document, ...]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Every section in reading order."""
        return tuple(section for document in self.documents for section in document.sections)

    @cached_property
    def core(self) -> tuple[Section, ...]:
        """The sections for every request."""
        return tuple(section for section in self.sections if section.is_core)

    @cached_property
    def _by_id(self) -> dict[str, Section]:
        by_id: dict[str, Section] = {}
        for section in self.sections:
            first = by_id.setdefault(section.id, section)
            if first is not section:
                places = f"{first.file}:{first.line} and {section.file}:{section.line}"
                raise KnowledgeError(f"section id {section.id!r} is used twice: {places}")
        return by_id

    def section(self, section_id: str) -> Section:
        """The section of that id.

        Raises:
            UnknownNameError: no such section; carries the nearest ids.
        """
        match = self._by_id.get(section_id)
        if match is None:
            from difflib import get_close_matches

            raise UnknownNameError("section", section_id, tuple(get_close_matches(section_id, self._by_id, n=3)))
        return match

    def has(self, section_id: str) -> bool:
        """Whether a section has that id."""
        return section_id in self._by_id


def knowledge_files(folder: Path = FOLDER) -> tuple[str, ...]:
    """The existing files, in reading order.

    Raises:
        KnowledgeError: the reading order lacks a Markdown file.
    """
    present = {path.relative_to(folder).as_posix() for path in (*folder.glob("*.md"), *folder.glob("[0-9]*/*.md"))}
    strange = sorted(present.difference(FILES))
    if strange:
        raise KnowledgeError(f"{strange[0]} is not in the reading order (knowledge/index.py, FILES)")
    return tuple(file for file in FILES if file in present)


def read_base(files: Iterable[tuple[str, str]]) -> KnowledgeBase:
    """The base of these files, each with its text.

    Raises:
        KnowledgeError: a file is malformed, or two sections have one id.
    """
    base = KnowledgeBase(tuple(read_document(file, text) for file, text in files))
    if base.sections:
        base.has(base.sections[0].id)
    return base


@cache
def knowledge() -> KnowledgeBase:
    """The knowledge base that ships with the package.

    Raises:
        KnowledgeError: it cannot be read, which is a fault of the package.
    """
    return read_base((file, (FOLDER / file).read_text(encoding="utf-8")) for file in knowledge_files())
