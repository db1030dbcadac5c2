"""The layouts of measured rows are legal plans: built with their graph they break no rule but those they relax."""

from __future__ import annotations

import pytest

from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.catalog.models import find_model
from shardwright.tools.errors import InputError
from shardwright.tools.fidelity.deployment import check_weights_fit, layout_of, serving_of
from shardwright.tools.fidelity.situation import Deployment, Situation, situation_of
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import HardwareBlock, ModelBlock, Plan, PolicyBlock, WorkloadBlock
from shardwright.tools.plan.view import PlanView
from shardwright.tools.validate import validate

from .rows import measured_rows, row_of

SITUATIONS = [modelled for row in measured_rows() if isinstance(modelled := situation_of(row), Situation)]
DEPLOYMENTS = {
    (situation.deployment.model, situation.deployment.accelerator, situation.deployment.strategy): situation.deployment
    for situation in SITUATIONS
}


def plan_of(deployment: Deployment) -> Plan:
    """The deployment as a plan, with one short request for each attention group of each replica."""
    strategy = deployment.strategy
    requests = strategy.dp * (strategy.decode.attention_dp or 1)
    return build_plan(
        BuildRequest(
            model=ModelBlock(name=deployment.model, config=find_model(deployment.model).config),
            hardware=HardwareBlock(
                accelerator=find_accelerator(deployment.accelerator),
                nodes=deployment.nodes,
                gpus_per_node=deployment.gpus_per_node,
            ),
            workload=WorkloadBlock(input_tokens=128, output_tokens=128, concurrency=requests),
            precision=deployment.precision,
            strategy=strategy,
            policy=PolicyBlock(relaxations=deployment.relaxations),
            serving=serving_of(deployment),
        )
    )


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "deployment", DEPLOYMENTS.values(), ids=lambda deployment: f"{deployment.model} {deployment.strategy.gpu_count}"
)
def test_a_measured_layout_is_a_plan_without_errors(deployment: Deployment) -> None:
    errors = [violation for violation in validate(plan_of(deployment)).violations if violation.severity == "error"]
    assert not errors, [f"{error.rule}: {error.message}" for error in errors]


@pytest.mark.parametrize("situation", SITUATIONS[::6], ids=lambda situation: situation.deployment.model)
def test_the_layout_made_without_a_graph_is_that_of_the_graph(situation: Situation) -> None:
    layout = layout_of(situation)
    read = layout_from_view(PlanView(plan_of(situation.deployment).model_dump(mode="json")))
    assert read.replicas == layout.replicas


def test_layouts_of_one_deployment_share_their_setting() -> None:
    few, many = (situation_of(row_of(concurrency_or_batch=users)) for users in ("2", "64"))
    assert isinstance(few, Situation) and isinstance(many, Situation)
    assert layout_of(few).setting.caches is layout_of(many).setting.caches
    assert layout_of(many).setting.workload.concurrency == 64


def test_weights_that_are_more_than_the_memory_cannot_have_run_as_stated() -> None:
    situation = situation_of(row_of(model="zai-org/GLM-4.5-Air", tp="2", gpus="2"))
    assert isinstance(situation, Situation)
    with pytest.raises(InputError, match="107 GB of a GPU that has 86 GB"):
        check_weights_fit(layout_of(situation))
