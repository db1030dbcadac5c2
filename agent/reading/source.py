"""A text that is read: what kind it is, and how the rules read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ...tools.frozen import Frozen
from ...tools.language.errors import RequestError
from ...tools.language.request import read_request, read_words
from ...tools.language.said import Said


class Source(Frozen):
    """Texts by name. `request` has to name a model, `words` need not; a `brief` may have several texts."""

    kind: Literal["request", "words", "brief"]
    texts: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """All texts, one after another."""
        return "\n\n".join(text for _, text in self.texts)

    def redacted(self, redact: Callable[[str], str]) -> Source:
        """The same texts as `redact` gives them."""
        return self.model_copy(update={"texts": tuple((name, redact(text)) for name, text in self.texts)})

    def saying(self, words: str, instead: str) -> Source:
        """The same texts with `words` in the place of `instead`."""
        return self.model_copy(
            update={"texts": tuple((name, text.replace(instead, words)) for name, text in self.texts)}
        )

    def rules(self) -> Said | RequestError:
        """What the rules read of the texts, or how they refuse them.

        Raises:
            InputError: a name in it leads to what cannot be read.
        """
        try:
            if self.kind == "brief":
                from ...tools.language.brief import read_brief

                return read_brief(self.texts)
            return (read_request if self.kind == "request" else read_words)(self.text)
        except RequestError as error:
            return error
