"""A follow-up as an edit of the request: what it states, what it takes back, and how each word was read.

An edit says everything that it does; what was not understood is listed in it and changes nothing.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from ...tools.language.merge import merge_said
from ...tools.language.said import Said, StatedStrategy
from ...tools.plan.document import Relaxation
from ..intent.intent import Intent


class Spoken(Struct, frozen=True):
    """A request as it stood at one point of a chat: what was said, and the intent that it makes."""

    said: Said
    intent: Intent


class Edit(Struct, frozen=True):
    """What a follow-up changes. `dropped` are fields of `Said` that are taken back, `forbidden` relaxations that are
    allowed no more, `whole_attention` that attention has no data parallelism. `questions` is what has to be asked back.
    """

    said: Said = field(default_factory=Said)
    dropped: tuple[str, ...] = ()
    forbidden: tuple[Relaxation, ...] = ()
    whole_attention: bool = False
    is_joined: bool = False
    readings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not (stated_fields(self.said) or self.dropped or self.forbidden or self.whole_attention)

    @property
    def strategy_only(self) -> StatedStrategy | None:
        """The strategy that it states, where it does nothing else."""
        others = stated_fields(self.said) - {"strategy", "relaxations"}
        return None if others or self.dropped or self.forbidden or self.whole_attention else self.said.strategy


def stated_fields(said: Said) -> set[str]:
    """The fields of a request that say something."""
    return set(said.model_dump(exclude_defaults=True, exclude={"words", "assumed", "unread", "readings"}))


def apply_edit(current: Said, edit: Edit) -> Said:
    """The request `current` with `edit` done to it."""
    said, updates = edit.said, dict[str, Any]()
    # How earlier words were read was shown when they were said.
    base = current.model_copy(update={"readings": (), "unread": ()})
    unsaid = Said()
    for name in edit.dropped:
        updates[name] = getattr(unsaid, name)
    if edit.forbidden:
        updates["relaxations"] = tuple(name for name in base.relaxations if name not in edit.forbidden)
    if _names_other_card(base, said):
        # The links of a node are the card's; those between nodes stay as they are.
        updates["intra_node_bw_gb_s"] = None
    words = {name: text for name, text in base.words.items() if name not in updates}
    merged = merge_said([base.model_copy(update={**updates, "words": words}), said])
    strategy = merged.strategy
    if edit.is_joined and base.strategy is not None and said.strategy is not None and "strategy" not in edit.dropped:
        strategy = _joined(base.strategy, said.strategy)
    if edit.whole_attention:
        strategy = _with_whole_attention(strategy or StatedStrategy())
    return merged.model_copy(
        update={
            "strategy": strategy,
            # Asking for one strategy settles which were weighed against each other.
            "compared": merged.compared if strategy == base.strategy else said.compared,
            "readings": edit.readings,
            "unread": tuple(dict.fromkeys(edit.unread)),
        }
    )


def _names_other_card(base: Said, said: Said) -> bool:
    named = said.accelerator or said.accelerator_object
    return named is not None and named != (base.accelerator or base.accelerator_object)


def _joined(before: StatedStrategy, after: StatedStrategy) -> StatedStrategy:
    phases = {
        phase: getattr(before, phase).model_copy(update=getattr(after, phase).model_dump(exclude_none=True))
        for phase in ("prefill", "decode")
    }
    counts = {name: getattr(after, name) for name in ("dp", "gpus") if getattr(after, name) is not None}
    return before.model_copy(update={**phases, **counts})


def _with_whole_attention(strategy: StatedStrategy) -> StatedStrategy:
    degrees = {"attention_dp": 1}
    phases = {phase: getattr(strategy, phase).model_copy(update=degrees) for phase in ("prefill", "decode")}
    return strategy.model_copy(update=phases)
