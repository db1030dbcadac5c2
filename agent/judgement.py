"""A plan that was just built, judged and timed in one reading: it may have thousands of replicas."""

from __future__ import annotations

from ..tools.calibration.custom import CustomCalibration
from ..tools.performance.estimate import estimate_view
from ..tools.plan.document import Plan
from ..tools.plan.performance import PerformanceEstimate
from ..tools.plan.reader import collector_paused, read_document
from ..tools.validate import ValidationReport, validate_read


def judged(
    plan: Plan, usd_per_gpu_hour: float | None, calibration: CustomCalibration | None
) -> tuple[ValidationReport, PerformanceEstimate]:
    """What the rules find in `plan`, and its figures.

    Raises:
        InputError: a fact that the figures need is not known.
    """
    with collector_paused():
        read = read_document(plan)
        try:
            return validate_read(read), estimate_view(read.view, usd_per_gpu_hour, calibration)
        finally:
            read.view.release()
