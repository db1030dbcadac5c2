"""Reads what keys of a foreign proposal say of the hardware: names of accelerators, counts of nodes and GPUs."""

from __future__ import annotations

from typing import Any

from ...bounds import DEGREE
from ...catalog.hardware import find_accelerator
from ...errors import InputError
from ...shapes import is_list, is_object
from .claims import Claims
from .figures import whole_number
from .items import ItemReader
from .lexicon import words_of
from .scope import Scope
from .words import HardwareWords

_COUNTS = ("count", "num", "number", "quantity", "total")
HARDWARE = ("hardware", "accelerator", "node_count", "gpus_per_node", "gpu_total", "devices")


class HardwareReader:
    """Reads the hardware of one proposal for its walk."""

    def __init__(self, claims: Claims, items: ItemReader) -> None:
        self._claims, self._items = claims, items

    def takes_member(self, concept: str | None, value: Any, scope: Scope) -> bool:
        """Read a member of an object that describes hardware; whether it was one."""
        if concept in ("type", "id", "model", "accelerator") and isinstance(value, str):
            self._accelerator(value, scope, must=concept != "id")
        elif concept in ("gpu_total", "devices", "accelerator") and whole_number(value) is not None:
            self._count("gpus_per_node" if scope.is_node else "total", value, scope)
        elif concept in ("node_count", "nodes") and is_list(value) and value:
            self._claims.facts.claim("nodes", len(value), scope.where)
            self._claims.walk(value, scope.but(is_node=True))
        elif concept is None and words_of(scope.key) in _COUNTS:
            self._count("total", value, scope)
        elif concept is None and words_of(scope.key) == "per node":
            self._count("gpus_per_node", value, scope)
        else:
            return False
        return True

    def read(self, concept: str, value: Any, scope: Scope) -> None:
        """Read the value of one of `HARDWARE`, wherever it stands."""
        if concept == "gpu_total" and isinstance(value, str) and self._claims.words.hardware(value).accelerator:
            concept = "hardware"
        if is_object(value) and concept not in ("node_count", "gpus_per_node"):
            self._claims.walk(value, scope.but(hardware=True))
        elif isinstance(value, str) and concept in ("hardware", "accelerator"):
            self._accelerator(value, scope, must=True)
        elif concept in ("node_count", "gpus_per_node"):
            self._count("nodes" if concept == "node_count" else concept, value, scope)
        elif whole_number(value) is not None and not is_list(value):
            if concept != "gpu_total":
                self._claims.unclear("{} is a count of devices or the number of one", value, scope)
            elif scope.phase is None:
                self._count("total", value, scope)
        elif self._claims.places_of(value) is None:
            self._claims.unknown(concept, concept, value, scope)
        else:
            self._items.take_devices(value, scope)

    def _count(self, field: str, value: Any, scope: Scope) -> None:
        number = whole_number(value)
        if number is None or not DEGREE.hold(number):
            self._claims.unclear("{} is no count", value, scope)
        elif scope.phase is None:
            self._claims.facts.claim(field, number, scope.where)

    def _accelerator(self, text: str, scope: Scope, *, must: bool) -> None:
        """Claim an accelerator by name, with the counts that stand beside it."""
        words = self._claims.words.hardware(text)
        if words.accelerator is None:
            try:
                words = HardwareWords(find_accelerator(text).id)
            except InputError as error:
                if must:
                    self._claims.notes.unclear(words.problem or str(error), scope.where, "hardware.accelerator")
                return
        self._claims.facts.claim("accelerator", words.accelerator, scope.where)
        for field, number in words.counts.items():
            self._claims.facts.claim(field, number, scope.where)
