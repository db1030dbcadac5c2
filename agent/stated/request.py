"""Joins a request, a brief and the arguments of a call, read by the rules or by a model beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

from ...tools.calibration.custom import CustomCalibration, own_calibration
from ...tools.errors import expect
from ...tools.language.errors import RequestError
from ...tools.language.said import Said
from ...tools.plan.document import ServingBlock
from ..hub.online import online
from ..intent.complete import complete
from ..intent.intent import Intent
from .arguments import Arguments, checked

if TYPE_CHECKING:
    from ..reading.source import Source


class Reader(Protocol):
    """A reader of texts beside the rules."""

    def read(self, source: Source, /) -> Said:
        """The statements in the words of `source`."""
        ...


def stated_intent(
    request: str | None,
    said: Said | None,
    *,
    brief: str | Path | Iterable[str | Path] | Mapping[str, str] = (),
    calibration: CustomCalibration | str | Path | None = None,
    stated: Arguments,
    reader: Reader | None = None,
) -> Intent:
    """The intent of a request, a brief and the arguments of a call (`said`), with the whole `serving` of `stated`.

    Raises:
        InputError: as `plan`.
    """
    intent = intent_of(request, brief=brief, flags=said, calibration=calibration, reader=reader)
    serving = stated.get("serving")
    if serving is None:
        return intent
    intended = intent.serving or ServingBlock()
    named = {name: getattr(intended, name) for name in ("engine", "engine_version", "kv_offload")}
    block = checked(ServingBlock, serving, "serving").model_copy(update=named)
    return intent.model_copy(update={"serving": block})


@online()
def intent_of(
    request: str | None = None,
    *,
    brief: str | Path | Iterable[str | Path] | Mapping[str, str] = (),
    flags: Said | None = None,
    calibration: CustomCalibration | str | Path | None = None,
    reader: Reader | None = None,
) -> Intent:
    """The complete intent of a request in words, a brief and flags; flags win over words, words over a brief.

    With `reader` a language model reads words and briefs beside the rules.

    Raises:
        InputError: as `plan`.
    """
    intent = complete(*statements_of(request, brief=brief, flags=flags, reader=reader))
    custom = own_calibration(calibration)
    return intent if custom is None else intent.model_copy(update={"calibration": custom})


def statements_of(
    request: str | None,
    *,
    brief: str | Path | Iterable[str | Path] | Mapping[str, str] = (),
    flags: Said | None = None,
    reader: Reader | None = None,
) -> list[Said]:
    """The statements of a brief, words and flags; later ones win.

    Raises:
        InputError: as `plan`.
    """
    statements: list[Said] = []
    if brief:
        statements.append(_read("brief", _brief(brief), reader))
    if request is not None:
        # The model may come from a brief or a flag: words alone must name it.
        named = bool(brief) or (flags is not None and (flags.model or flags.model_config_object) is not None)
        statements.append(_read("words" if named else "request", [("the request", request)], reader))
    if flags is not None:
        statements.append(flags)
    if not statements:
        raise RequestError("nothing was asked: give a request, a brief or --model")
    return statements


def _brief(brief: str | Path | Iterable[str | Path] | Mapping[str, str]) -> list[tuple[str, str]]:
    """The texts of a brief by their names: given as they are, or read from files.

    Raises:
        InputError: as `plan`.
    """
    from ...tools.language.brief import brief_texts

    if isinstance(brief, Mapping):
        return list(cast("Mapping[str, str]", brief).items())
    files = (brief,) if isinstance(brief, str | Path) else brief
    expect(files, Iterable, "brief", "the path of a file, or several, is expected")
    for path in files:
        expect(path, (str, Path), "brief", "the path of a file is expected")
    return brief_texts([Path(path) for path in files])


def _read(kind: Literal["request", "words", "brief"], texts: Sequence[tuple[str, str]], reader: Reader | None) -> Said:
    """What the rules and `reader` understand of texts.

    Raises:
        InputError: as `plan`.
    """
    from ..reading.source import Source

    for _, text in texts:
        expect(text, str, "the request", "a text is expected")
    source = Source(kind=kind, texts=tuple(texts))
    if reader is not None:
        return reader.read(source)
    said = source.rules()
    if isinstance(said, RequestError):
        raise said
    return said
