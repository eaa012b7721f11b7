"""Autotune Halide pipelines for the devices they will run on.

    import sdk
    result = sdk.autotune("blur.cpp", target="arm64", budget_s=600)
    print(result.best.header, result.best.speed_up)

The names below are imported when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autotune_loop.comparison import ComparedSchedule
    from autotune_loop.cost_model.training_report import TrainingReport
    from autotune_loop.events import Event, event_to_dict
    from autotune_loop.result import Outcome, TunedSchedule, TuneResult
    from autotune_loop.tune_request import LearningOptions, SamplingOptions
    from devices.measure_settings import KernelInputs, MeasureSettings
    from sdk.api.autotune import autotune
    from sdk.api.bench import bench
    from sdk.api.build import build
    from sdk.api.retrain import retrain
    from targets.artifacts import Artifacts
    from targets.errors import (
        DeviceError,
        EmulatorError,
        GeneratorError,
        ProfileError,
        RunFolderError,
        SdkError,
        ToolchainError,
        UsageError,
        WeightsError,
    )
    from targets.stop_signal import StopSignal

__all__ = [
    "Artifacts",
    "ComparedSchedule",
    "DeviceError",
    "EmulatorError",
    "Event",
    "GeneratorError",
    "KernelInputs",
    "LearningOptions",
    "MeasureSettings",
    "Outcome",
    "ProfileError",
    "RunFolderError",
    "SamplingOptions",
    "SdkError",
    "StopSignal",
    "ToolchainError",
    "TrainingReport",
    "TuneResult",
    "TunedSchedule",
    "UsageError",
    "WeightsError",
    "autotune",
    "bench",
    "build",
    "event_to_dict",
    "retrain",
]

_ERRORS = [name for name in __all__ if name.endswith("Error")]
_MODULES = {
    "Artifacts": "targets.artifacts",
    "ComparedSchedule": "autotune_loop.comparison",
    "Event": "autotune_loop.events",
    "KernelInputs": "devices.measure_settings",
    "LearningOptions": "autotune_loop.tune_request",
    "MeasureSettings": "devices.measure_settings",
    "Outcome": "autotune_loop.result",
    "SamplingOptions": "autotune_loop.tune_request",
    "StopSignal": "targets.stop_signal",
    "TrainingReport": "autotune_loop.cost_model.training_report",
    "TuneResult": "autotune_loop.result",
    "TunedSchedule": "autotune_loop.result",
    "autotune": "sdk.api.autotune",
    "bench": "sdk.api.bench",
    "build": "sdk.api.build",
    "event_to_dict": "autotune_loop.events",
    "retrain": "sdk.api.retrain",
    **dict.fromkeys(_ERRORS, "targets.errors"),
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'sdk' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
