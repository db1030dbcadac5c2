"""Collects the operations of one program, each timed as it is written."""

from __future__ import annotations

from dataclasses import dataclass

from ...calibration.forms.elementary import Number, larger
from ..clock import Clock
from ..collectives import Links, Transfer
from ..operation import COLLECTIVES, Operation, Shape, TokenLoad
from ..operators.work import Work
from ..setting import Setting
from ..stage_shape import StageShape


@dataclass(frozen=True, slots=True)
class ProgramContext:
    """Everything that a program of one layer is written from: setting, shape of the stage, tokens of the pass."""

    setting: Setting
    shape: StageShape
    load: TokenLoad
    clock: Clock
    links: Links

    @property
    def hidden(self) -> int:
        """H."""
        return self.setting.architecture.hidden_size

    @property
    def element_bytes(self) -> float:
        """Bytes of one activation element."""
        return self.setting.activation_bytes

    @property
    def token_bytes(self) -> Number:
        """Bytes of the hidden states of one attention group's tokens."""
        return self.load.tokens * self.hidden * self.element_bytes


class ProgramWriter:
    """Writes operations one after the other; each reads the one before it unless it says otherwise."""

    def __init__(self, context: ProgramContext, before: str | None = None) -> None:
        self.context = context
        self.operations: list[Operation] = []
        self.last: str | None = before
        # Of each operation: its own bit, and those of all that come before it, its own included.
        self._own: dict[str, int] = {}
        self._behind: dict[str, int] = {}
        self._last_of: dict[bool, str] = {}

    def copy(self) -> ProgramWriter:
        """A writer that goes on from here, while this one stays as it is."""
        other = ProgramWriter(self.context, self.last)
        other.operations = self.operations.copy()
        other._own, other._behind, other._last_of = self._own.copy(), self._behind.copy(), self._last_of.copy()
        return other

    def compute(self, operation: Operation, work: Work) -> str:
        """Add `operation` with the time of `work`."""
        time = self.context.clock.time(work)
        inputs, after = self._order(operation)
        return self._add(
            operation._replace(
                inputs=inputs,
                after=after,
                dtype=work.dtype,
                flops=work.flops,
                moved_bytes=work.moved_bytes,
                seconds=time.seconds,
                kind=time.bound,
                origin=time.origin,
            )
        )

    def transfer(self, operation: Operation, transfer: Transfer) -> str:
        """Add a collective that costs `transfer`."""
        inputs, after = self._order(operation)
        return self._add(
            operation._replace(
                inputs=inputs,
                after=after,
                sent_bytes=transfer.sent_bytes,
                seconds=transfer.seconds,
                kind="communication",
                spans_domains=transfer.spans_domains,
                origin=transfer.origin,
            )
        )

    def reshape(self, operation: Operation) -> str:
        """Add an operation that costs nothing of its own (a view of what is there)."""
        inputs, after = self._order(operation)
        return self._add(operation._replace(inputs=inputs, after=after))

    def _order(self, operation: Operation) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What `operation` reads, and what it only waits for."""
        inputs, after = operation.inputs, operation.after
        if not inputs and self.last is not None:
            inputs = (self.last,)
        behind = 0
        for name in inputs:
            behind |= self._behind.get(name, 0)
        # Kernels of one device run one after the other, and so do transfers on its links: branches do not overlap
        # with their like.
        on_links = operation.op in COLLECTIVES
        previous = self._last_of.get(on_links)
        if previous is not None and not self._own[previous] & behind:
            after = (previous,)
            behind |= self._behind[previous]
        own = self._own[operation.name] = 1 << len(self.operations)
        self._behind[operation.name] = behind | own
        self._last_of[on_links] = operation.name
        return inputs, after

    def _add(self, operation: Operation) -> str:
        self.operations.append(operation)
        self.last = operation.name
        return operation.name


def shape_of(sequences: Number, tokens: Number, name: str, width: float) -> Shape:
    """[["batch", …], ["seq", …], [name, …]], widths rounded up."""
    return ("batch", sequences), ("seq", larger(1, tokens)), (name, -(-int(width * 1_000_000) // 1_000_000))
