"""A language model at an endpoint as a solver: the configured endpoint, used as by any user's agent.

The solver is sent to other processes as it is: it holds no client and no secret. Each case has its own client, so that
what one case learnt of the server changes nothing in another.
"""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from ....tools.calibration.custom import CustomCalibration
from ....tools.errors import InputError
from ...loop.agent_options import AgentOptions
from ...model.client import ModelClient
from ...model.endpoint import EndpointClient
from ...model.redaction import Redactor
from ...model.settings import EndpointFlags, EndpointSettings, read_settings
from ..posed import PosedCase


class Live(Struct, frozen=True):
    """The model that flags, environment and settings file name; make it with `of`, which reads them once."""

    model: str
    flags: EndpointFlags = field(default_factory=EndpointFlags)
    options: AgentOptions = field(default_factory=AgentOptions)
    calibration: CustomCalibration | None = None
    is_deterministic: bool = False

    @property
    def reads(self) -> bool:
        """Whether the model reads requests too, if a case asks for it."""
        return self.options.reader == "model"

    @classmethod
    def of(cls, flags: EndpointFlags | None = None, options: AgentOptions | None = None) -> Live:
        """The solver of the configured endpoint; `options` without a mode or prices take the settings'.

        Raises:
            InputError: no endpoint or model is named, a setting is invalid, or a flag holds a secret.
        """
        named, chosen = flags or EndpointFlags(), options or AgentOptions()
        _check_public(named.base_url)
        settings = read_settings(named)
        mode = settings.mode if chosen.mode == "auto" else chosen.mode
        chosen = replace(chosen, mode=mode, prices=chosen.prices or settings.prices)
        return cls(Redactor(settings.secrets()).text(settings.model), named, chosen)

    @property
    def name(self) -> str:
        """`live`, and the model."""
        return f"live:{self.model}"

    @property
    def digest(self) -> str:
        """Identifies the endpoint beyond its name: its URL and how it is asked, without secrets."""
        settings = self.settings()
        identity = (settings.base_url, self.model, str(settings.stream))
        return hashlib.sha256("\0".join(identity).encode()).hexdigest()

    def settings(self) -> EndpointSettings:
        """The endpoint, read anew in each process: keys stay in the environment.

        Raises:
            InputError: as `of`.
        """
        return read_settings(self.flags)

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """The model."""
        return EndpointClient(self.settings())


def _check_public(url: str | None) -> None:
    """Refuse a URL with a secret in it: flags are sent to other processes.

    Raises:
        InputError: it has a user or a query.
    """
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return  # the settings say what is wrong with it
    if parts.query or "@" in parts.netloc:
        raise InputError(
            "the URL of the endpoint holds a user or a query: set it as $OPENAI_BASE_URL, not as an option"
        )
