"""A case of an evaluation: a request or a broken proposal, and its right answer. Data only."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ...tools.frozen import Frozen
from ...tools.rules.base import Edit

# The source of a right answer: the planner of this package, an engineer by hand, or a publication.
Author = Literal["builder", "engineer", "publication"]
# The kind of right answer: a plan, the rule that no plan can keep, a refusal to read the request, or a reading of it,
# without a plan.
Expected = Literal["plan", "infeasible", "refused", "reading"]

# Each golden is built, validated and estimated.
MOST_GOLDENS = 64

_Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[\w.\-]+$")]
_Text = Annotated[str, Field(max_length=100_000)]
_RuleId = Annotated[str, Field(pattern=r"^[A-Z]{2}\d{3}$")]


class Golden(Frozen):
    """A right answer: a strategy, as an object or in words ("TP8", "DP2 of TP8 x PP2"), or a base plan by its name.

    What a strategy leaves out is filled in as an engineer would. `source` is the citation, or the reasoning.
    """

    strategy: dict[str, Any] | Annotated[str, Field(max_length=2000)] | None = None
    base: _Name | None = None
    by: Author = "engineer"
    source: _Text = ""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.strategy is None) == (self.base is None):
            raise ValueError("a golden has either `strategy` or `base`")
        return self


class Broken(Frozen):
    """A proposal that is wrong: a text as a model would write it, or a sound document with edits.

    `edits` are made to the base plan that `base` names, else to the plan of the first golden.
    """

    text: _Text | None = None
    base: _Name | None = None
    edits: tuple[Edit, ...] = ()

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.text is None) == (not self.edits):
            raise ValueError("a proposal has either `text` or `edits`")
        return self


class Case(Frozen):
    """One case. The first of `goldens` is the answer, the others are admissible variants of it.

    `family` groups cases that stand or fall together; `proposal` is what is proposed first, where repair is asked for.
    Without a `request` the question is that of the base plan: the same model, hardware, load and formats; or, by
    `asks`, that of the proposal, whose edits then change what is asked for.
    Of a `reading`, `said` has the fields of the words with their values, `constraints` lines such as "tp <= 4"; its
    `family` is the name of the set that it belongs to. Where neither is there, the right answer is a question back.
    `intent` maps dotted paths of the intent to the values that the request has to be read as. `rules` are the errors
    that the proposal breaks, all of them, or the rule that leaves no plan; `refusal` are words of the refusal.
    `decided_by` are rules that the explanation has to cite. `regret_pct` is how much worse than the golden, by the
    performance model, still counts as no worse.
    """

    id: _Name
    family: _Name
    request: _Text | None = None
    proposal: Broken | None = None
    asks: Literal["base", "proposal"] = "base"
    expect: Expected = "plan"
    intent: dict[str, Any] = Field(default_factory=dict[str, Any])
    said: dict[str, Any] = Field(default_factory=dict[str, Any])
    constraints: tuple[_Text, ...] = ()
    goldens: tuple[Golden, ...] = Field(default=(), max_length=MOST_GOLDENS)
    rules: tuple[_RuleId, ...] = ()
    refusal: tuple[str, ...] = ()
    decided_by: tuple[_RuleId, ...] = ()
    regret_pct: float = Field(default=2.0, ge=0)
    tags: tuple[str, ...] = ()
    why: _Text = ""
    source: _Text = ""

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if self.request is None and self.base is None:
            raise ValueError("a case without `request` needs a `base`: of its proposal, or of its first golden")
        if self.proposal is not None and self.proposal.edits and self.proposal.base is None and not self.goldens:
            raise ValueError("`edits` change the first golden, or a `base`: name one")
        return self

    @property
    def base(self) -> str | None:
        """The base plan that is asked about, if there is no request in words."""
        if self.proposal is not None and self.proposal.base is not None:
            return self.proposal.base
        return self.goldens[0].base if self.goldens else None

    @property
    def by_builder(self) -> bool:
        """Whether this package wrote the right answer: its planner the strategy, or its builder the base plan."""
        return bool(self.goldens) and (self.goldens[0].by == "builder" or self.goldens[0].base is not None)

    @property
    def digest(self) -> str:
        """Identifies a case: SHA-256 (hex) of its question and its right answer, without prose."""
        data = self.model_dump(mode="json", exclude={"why": True, "source": True, "goldens": {"__all__": {"source"}}})
        data = {name: value for name, value in data.items() if value or name not in ("said", "constraints")}
        text = json.dumps(data, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()
