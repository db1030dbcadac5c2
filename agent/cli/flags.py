"""The types of the options: what one value of the call may be, and which words a refusal says.

Types read one value each and refuse with its option's name; what values mean together is decided by the intent.
Legal names come from the document's own types, imported only when a value is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ...tools.errors import InputError
from ...tools.input.bounds import DEGREE, INDEX, LATENCY_MS, REQUESTS, TOKENS, USD, Bounds
from ...tools.input.strict_values import check_text
from ..intent.cluster import Cluster, read_cluster, said_hardware
from ..model.deadline import MAX_SECONDS
from ..runs.time_limit import TIME_LIMIT_S
from .streams import check_stdin, is_standard, named_path

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

STDIN = Path("/dev/stdin")
# Where a call notes what reads standard input.
_STDIN_TAKEN = "shardwright.stdin"
# `--hardware` as read.
HardwareFlag = Cluster


class FileType(click.Path):
    """The path of a file, which need not be there; `-` is a standard stream, and `./-` a file of that name."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """`value` as a path."""
        try:
            return named_path(os.fsdecode(value))
        except InputError as error:
            self.fail(str(error), param, ctx)


FILE = FileType()


class InputType(FileType):
    """The path of a file that is read; `-` is standard input, which only one argument or option can read.

    With `keeps_dash` it stays `-`, for a reader that takes it so; else it is the path of standard input.
    """

    def __init__(self, *, keeps_dash: bool = False) -> None:
        super().__init__()
        self._keeps_dash = keeps_dash

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """`value` as a path."""
        path = super().convert(value, param, ctx)
        if not is_standard(path) or ctx is None or ctx.resilient_parsing:
            return path
        take_stdin(_name_of(param), ctx)
        return path if self._keeps_dash else STDIN


def _name_of(param: click.Parameter | None) -> str:
    if param is None:
        return "an input"
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name


def take_stdin(name: str, context: click.Context) -> None:
    """Note that standard input is read as `name`, an argument or option of the call.

    Raises:
        UsageError: it is read as another, too.
        InputError: it is closed.
    """
    taken = context.meta.get(_STDIN_TAKEN)
    if taken is not None:
        raise click.UsageError(f"standard input can be {taken} or {name}, not both; put one into a file", context)
    check_stdin()
    context.meta[_STDIN_TAKEN] = name


INPUT, DASHED_INPUT = InputType(), InputType(keeps_dash=True)


strict_option = click.option(
    "--strict", is_flag=True, help="Exit 1, valid plan or not, where something that was said was not acted on."
)


def with_options(command: Callable[..., Any], options: Iterable[Callable[..., Any]]) -> Callable[..., Any]:
    """`command` with `options`, which its help lists in this order."""
    for option in reversed([*options]):
        command = option(command)
    return command


def output_format_of(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--format`, the option of every command that prints a result; the first of `formats` is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Text for people or JSON for programs.",
    )


output_format = output_format_of("text", "json")


def calibration_option(
    help_text: str, *, from_environment: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--calibration FILE`: the user's constants, which `calibrate` wrote or $SHARDWRIGHT_CALIBRATION names."""
    return click.option(
        "--calibration",
        type=INPUT,
        envvar="SHARDWRIGHT_CALIBRATION" if from_environment else None,
        show_envvar=from_environment,
        metavar="FILE",
        help=help_text,
    )


own_calibration = calibration_option("Times by your own measurements: a file that shardwright calibrate wrote.")


def inline_config(text: str, what: str) -> dict[str, Any] | None:
    """The JSON object that `text` is, or `None` where it does not begin like one (then it is a name or a path).

    Raises:
        InputError: it begins like an object and is none.
    """
    if not text.lstrip().startswith("{"):
        return None
    from ...tools.catalog.config_file import parse_config

    return dict(parse_config(text, what))


class TextType(click.ParamType):
    """Any text that a document can carry."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """`value`, refused where it is not UTF-8."""
        try:
            return check_text(str(value), "the value")
        except InputError as error:
            self.fail(str(error), param, ctx)


class CountType(click.ParamType):
    """A whole number within bounds; `k` is 1024 (`4k`), commas are allowed (`2,048`)."""

    name = "count"

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """`value` as an integer within the bounds."""
        from ...tools.language.patterns.quantities import read_number
        from ...tools.language.writing.normal_form import normalise

        number = read_number(normalise(str(value).strip()[:64]))
        if number is None or number != number // 1:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        if not self._bounds.hold(number):
            least, most = self._bounds
            self.fail(f"{value!r} is not between {least:,} and {most:,}", param, ctx)
        return int(number)


class LimitType(click.ParamType):
    """A figure within bounds, such as milliseconds or USD."""

    name = "number"

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """`value` as a number within the bounds."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not self._bounds.hold(number):
            least, most = self._bounds
            self.fail(f"{value!r} is not between {least:g} and {most:g}", param, ctx)
        return number


class NameType(click.ParamType):
    """One name out of a closed set that `names` gives when it is needed."""

    def __init__(self, name: str, names: Callable[[], Sequence[str]]) -> None:
        self.name = name
        self._names = names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """`value` in lower case, refused where it is none of the names."""
        word = str(value).strip().lower().replace("-", "_")
        names = self._names()
        if word not in names:
            self.fail(f"{value!r} is none of {', '.join(names)}", param, ctx)
        return word

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin as typed."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self._names() if name.startswith(incomplete.lower())]


class PrecisionType(NameType):
    """A number format of weights, several to choose from (`fp8,bf16`, `fp8 or bf16`), or `any`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """`value` as it is said: names in lower case with commas between them, or `any`."""
        from ..intent.formats import said_weights

        try:
            said_weights(str(value))
        except InputError as error:
            self.fail(str(error), param, ctx)
        return str(value).strip().lower()


class HardwareType(click.ParamType):
    """`NODESxGPUS:ACCELERATOR`; where a cluster is planned for, words too."""

    name = "hardware"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """`value` with the accelerator found in the catalogue."""
        try:
            return self._read(str(value))
        except InputError as error:
            self.fail(str(error), param, ctx)


def dtype_names() -> Sequence[str]:
    """Number formats."""
    from ...tools.catalog.dtypes import DTYPES

    return DTYPES


def objective_names() -> Sequence[str]:
    """The objectives that a plan may be made for."""
    from ...tools.plan.document import Objective

    return get_args(Objective)


def relaxation_names() -> Sequence[str]:
    """The named relaxations of rules."""
    from ...tools.plan.document import Relaxation

    return get_args(Relaxation)


TEXT = TextType()
COUNT = CountType(DEGREE)
SEED = CountType(INDEX)
TOKEN_COUNT = CountType(TOKENS)
REQUEST_COUNT = CountType(REQUESTS)
LIMIT = LimitType(Bounds(1e-9, 1e12))
LATENCY = LimitType(LATENCY_MS)
PRICE = LimitType(USD)
SECONDS = LimitType(Bounds(1e-9, MAX_SECONDS))
HARDWARE = HardwareType(read_cluster)
SAID_HARDWARE = HardwareType(lambda text: (text, said_hardware(text)))
DTYPE = NameType("dtype", dtype_names)
PRECISION = PrecisionType("precision", lambda: ("any", *dtype_names()))
OBJECTIVE = NameType("objective", objective_names)
RELAXATION = NameType("relaxation", relaxation_names)


def time_limit_option(span: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--time-limit`, as the parameter `time_limit`; `span` says what each limit is for, where there are several."""
    return click.option(
        "--time-limit",
        type=SECONDS,
        default=TIME_LIMIT_S,
        show_default=True,
        metavar="SECONDS",
        help=f"Answer{span} with the best found so far after this time, and say what was not looked at.",
    )
