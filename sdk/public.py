"""Everything that `import sdk` offers."""

from __future__ import annotations

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
