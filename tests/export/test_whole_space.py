"""Over the whole space: what is exported runs where the plan runs it, and everything else is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from shardwright.tools.export.export import export
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.plan.reader import read_document

from ..plan.test_layout_law import documents
from .placements import stages, world
from .plans import ENGINES


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=15)
@given(document=documents())
def test_what_is_not_refused_runs_on_the_devices_of_the_plan(engine: str, document: dict[str, Any]) -> None:
    found = export(document, engine)
    assert (found.text is None) is bool(found.refused)
    if found.refused:
        assert not found.launches and found.benchmark is None
        return
    layout = layout_from_view(read_document(document).view)
    for server, replica in enumerate(layout.replicas):
        phase = replica.phases[0]
        assert stages(found, server) == [list(stage.devices) for stage in phase.stages]
        launch = next(one for one in found.launches if one.server == server)
        assert world(found, launch) == len(phase.devices)
