"""The schedules that a network's run has found, by operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.autotune_loop.network.operator_generators import OperatorGenerator
from halide_autotune.autotune_loop.network.packed_floats import BLOCK
from halide_autotune.autotune_loop.network.tasks import TaskKey
from halide_autotune.autotune_loop.shipping.recorded_facts import own_schedule_stays
from halide_autotune.autotune_loop.shipping.run_schedule import read_run_schedule
from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.autotune_loop.specification.tuning_task import published_paths
from halide_autotune.autotune_loop.store.run_record import RunRecord, read_run_record
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.generator.run import AutoschedulerRequest
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice

# Makes of a header's text what applies it.
Apply = Callable[[str], AutoschedulerRequest]


@dataclass(frozen=True)
class RunSchedules:
    """A run of `sdk network tune`."""

    folder: Path
    record: RunRecord

    @property
    def target(self) -> str:
        """The profile that it was tuned for."""
        return self.record.spec.profile.name

    @property
    def target_features(self) -> tuple[str, ...]:
        """Further ones of its Halide target, with which it was tuned."""
        return self.record.spec.options.devices.target_features

    def filled_in(self, asked: DeviceOptions) -> DeviceOptions:
        """What is asked of devices, with the run's target and features where none are named."""
        return replace(
            asked,
            target=asked.target or self.target,
            target_features=asked.target_features or self.target_features,
        )

    def check_target(self, name: str, features: Sequence[str]) -> None:
        """Check that it was tuned for a profile with these features, which are `filled_in`.

        Raises:
            RunFolderError: it was not.
        """
        if name != self.target:
            raise RunFolderError(
                f"{self.folder} was tuned for {self.target}, not for {name}.",
                next_step=f"Build for --target {self.target}, or give a run for {name}.",
            )
        # Those that the profile has anyway change nothing.
        known = self.record.spec.profile.halide_target.split("-")
        if not {*self.target_features} <= {*features} <= {*known}:
            own = _features_text(self.target_features)
            raise RunFolderError(
                f"{self.folder} was tuned for {self.target} {own}, not {_features_text(features)}.",
                next_step="Leave out --target-features to have the run's, or tune the network with these in a run of "
                "its own.",
            )

    def blocks(self, generators: Iterable[OperatorGenerator]) -> dict[TaskKey, int]:
        """With which block of weights operators were tuned, by their tasks, whatever block these have."""
        known = {
            (each.generator_name, *_without_block(each.parameters)): int(each.parameters[BLOCK])
            for each in self.record.spec.tasks
            if each.parameters.get(BLOCK, "").isdecimal()
        }
        found = {}
        for generator in generators:
            for task, texts in zip(generator.tasks, generator.parameters, strict=True):
                parameters = dict(text.split("=", 1) for text in texts)
                block = known.get((generator.name, *_without_block(parameters)))
                found.update({} if block is None else {task.key: block})
        return found

    def choice(
        self,
        generator_name: str,
        parameters: Mapping[str, str],
        what: str,
        apply: Apply,
    ) -> ScheduleChoice | None:
        """An operator's schedule; None if none of its schedules could be timed.

        Args:
            what: the operator, with its layer, for people.
            apply: as `Workbench.apply_header`.

        Raises:
            RunFolderError: the run has not tuned this operator, or its schedule is damaged.
        """
        tasks = self.record.spec.tasks
        for index, (task, path) in enumerate(zip(tasks, published_paths(self.folder / "samples", tasks), strict=True)):
            if task.generator_name == generator_name and dict(task.parameters) == dict(parameters):
                return self._choice(index, path, apply) if path.is_file() else None
        raise RunFolderError(
            f"{self.folder} has no schedule for {what}: it is a run of another network, or this one has changed since.",
            next_step="Tune this network with sdk network tune, or give its run.",
        )

    def _choice(self, index: int, path: Path, apply: Apply) -> ScheduleChoice:
        if own_schedule_stays(path, self.folder / "tuning.db", index):
            return ScheduleChoice(OWN_SCHEDULE, None, searches=False)
        header_text = read_run_schedule(self.folder, self.record, index, path).header_text
        return ScheduleChoice("of the run", apply(header_text), searches=False)


def _features_text(features: Sequence[str]) -> str:
    return f"with the target features {', '.join(features)}" if features else "without further target features"


def _without_block(parameters: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted((name, value) for name, value in parameters.items() if name != BLOCK)


def run_schedules(folder: Path) -> RunSchedules:
    """The run in a folder.

    Raises:
        RunFolderError: it is no run folder, or damaged.
    """
    return RunSchedules(folder, read_run_record(folder))
