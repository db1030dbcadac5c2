"""A plan document made ready to draw: its heading, and its boxes within any limits. All pictures begin here."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

from ..plan.compact import expand
from ..plan.view import PlanView, as_mapping, as_str
from .box import Box
from .build import Builder, Limits
from .folding import Folder
from .tree import Tree, read_tree
from .wording import heading


class Drawing(Struct, frozen=True):
    """A document ready to draw; `note` says what is odd about it as a whole."""

    title: str
    note: str
    tree: Tree
    folder: Folder

    def box(self, limits: Limits) -> tuple[Box, bool]:
        """The box around all, and whether nothing had to be left out for `limits`."""
        builder = Builder(self.tree, self.folder.families, self.folder.likeness, limits, limits.boxes)
        root = builder.root()
        return root, builder.left >= 0

    def within(self, ladder: Sequence[Limits]) -> Box:
        """The box within the first of `ladder` that leaves nothing out, else within the last."""
        for limits in ladder[:-1]:
            root, is_whole = self.box(limits)
            if is_whole:
                return root
        return self.box(ladder[-1])[0]


@contextmanager
def drawing(plan_document: object, phase: str | None = None) -> Generator[Drawing]:
    """The drawing of a document of whatever form, of one phase alone where `phase` names it."""
    view = PlanView(expand(as_mapping(plan_document))[0])
    yield drawing_of(view, phase)
    view.release()


def drawing_of(view: PlanView, phase: str | None = None, marks: Mapping[int, Hashable] | None = None) -> Drawing:
    """The drawing of a view; nodes with other `marks` (by position) are drawn apart."""
    tree = read_tree(view, phase)
    stated = view.hardware.get("accelerator")
    accelerator, nodes = as_mapping(stated).get("id", stated), view.hardware.get("nodes")
    title = heading(as_str(view.model.get("name")), accelerator, len(view.devices), nodes)
    if phase is not None:
        title = f"{title} · {phase}"
    note = f"{tree.unplaced:,} edges lead nowhere" if tree.unplaced else ""
    return Drawing(title, note if tree.order else "the document has no node to draw", tree, Folder(tree, marks or {}))
