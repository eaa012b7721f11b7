"""Autotune Halide pipelines for the devices they will run on.

    import sdk
    result = sdk.autotune("blur.cpp", target="arm64", options=sdk.RunOptions.of(budget_s=600))
    print(result.best.header, result.best.speed_up)

The names below are imported when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autotune_loop.cost_model.training_report import TrainingReport
    from autotune_loop.events import Event, event_to_dict
    from autotune_loop.measure.comparison import ComparedSchedule
    from autotune_loop.play_off.header_play_off import HeaderPlayOff
    from autotune_loop.play_off.verdict import Verdict
    from autotune_loop.run.result import Outcome, TunedSchedule, TuneResult
    from autotune_loop.shipping.check_folder import CheckedFolder
    from autotune_loop.shipping.ship_manifest import ShipManifest
    from autotune_loop.specification.objective import Objective, ObjectiveKind
    from autotune_loop.specification.options import (
        DeviceOptions,
        FarmOptions,
        LearnOptions,
        Limits,
        MeasureOptions,
        PlayOffOptions,
        RunOptions,
        SearchOptions,
    )
    from devices.timing.measure_settings import KernelInputs, MeasureSettings
    from sdk.api.autotune import autotune, resume
    from sdk.api.bench import bench, play_off
    from sdk.api.build import build
    from sdk.api.report import report
    from sdk.api.retrain import retrain
    from sdk.api.ship import check_shipped, ship
    from sdk.options.generator_spec import GeneratorSpec
    from targets.build.artifacts import Artifacts
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
    from targets.process.stop_signal import StopSignal

__all__ = [
    "Artifacts",
    "CheckedFolder",
    "ComparedSchedule",
    "DeviceError",
    "DeviceOptions",
    "EmulatorError",
    "Event",
    "FarmOptions",
    "GeneratorError",
    "GeneratorSpec",
    "HeaderPlayOff",
    "KernelInputs",
    "LearnOptions",
    "Limits",
    "MeasureOptions",
    "MeasureSettings",
    "Objective",
    "ObjectiveKind",
    "Outcome",
    "PlayOffOptions",
    "ProfileError",
    "RunFolderError",
    "RunOptions",
    "SdkError",
    "SearchOptions",
    "ShipManifest",
    "StopSignal",
    "ToolchainError",
    "TrainingReport",
    "TuneResult",
    "TunedSchedule",
    "UsageError",
    "Verdict",
    "WeightsError",
    "autotune",
    "bench",
    "build",
    "check_shipped",
    "event_to_dict",
    "play_off",
    "report",
    "resume",
    "retrain",
    "ship",
]

_OPTIONS = [name for name in __all__ if name.endswith("Options")]
_ERRORS = [name for name in __all__ if name.endswith("Error")]
_MODULES = {
    "Artifacts": "targets.build.artifacts",
    "CheckedFolder": "autotune_loop.shipping.check_folder",
    "ComparedSchedule": "autotune_loop.measure.comparison",
    "Event": "autotune_loop.events",
    "GeneratorSpec": "sdk.options.generator_spec",
    "HeaderPlayOff": "autotune_loop.play_off.header_play_off",
    "KernelInputs": "devices.timing.measure_settings",
    "MeasureSettings": "devices.timing.measure_settings",
    "Objective": "autotune_loop.specification.objective",
    "ObjectiveKind": "autotune_loop.specification.objective",
    "Outcome": "autotune_loop.run.result",
    "ShipManifest": "autotune_loop.shipping.ship_manifest",
    "StopSignal": "targets.process.stop_signal",
    "TrainingReport": "autotune_loop.cost_model.training_report",
    "TuneResult": "autotune_loop.run.result",
    "TunedSchedule": "autotune_loop.run.result",
    "Verdict": "autotune_loop.play_off.verdict",
    "autotune": "sdk.api.autotune",
    "bench": "sdk.api.bench",
    "build": "sdk.api.build",
    "check_shipped": "sdk.api.ship",
    "event_to_dict": "autotune_loop.events",
    "play_off": "sdk.api.bench",
    "report": "sdk.api.report",
    "retrain": "sdk.api.retrain",
    "ship": "sdk.api.ship",
    "Limits": "autotune_loop.specification.options",
    "resume": "sdk.api.autotune",
    **dict.fromkeys(_OPTIONS, "autotune_loop.specification.options"),
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
