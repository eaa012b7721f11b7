"""`sdk.check_schedules`: whether committed headers still fit, are right, and are as fast as they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan, KernelBench, open_kernel_bench
from halide_autotune.autotune_loop.play_off.times import turn_settings
from halide_autotune.autotune_loop.shipping.check_folder import CheckedFolder, check_folder
from halide_autotune.autotune_loop.shipping.gate.checked_schedule import CheckedSchedule, GateResult, GateVerdict
from halide_autotune.autotune_loop.shipping.gate.promise import Promise
from halide_autotune.autotune_loop.shipping.gate.timed_check import TimedCheck
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.ship_manifest import FILE_NAME, ShipManifest, ShippedSchedule, read_manifest
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.published import DEFAULT
from halide_autotune.autotune_loop.store.size_schedules import GENERAL
from halide_autotune.devices.device import Device
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.sdk.api.opened_plan import opened_plan_on
from halide_autotune.sdk.api.ship import given_sources
from halide_autotune.sdk.inventory.lookup import open_inventory
from halide_autotune.sdk.options.check_options import CheckOptions
from halide_autotune.sdk.options.generator_spec import GeneratorSpec, asked_options
from halide_autotune.sdk.project.preparation import open_workbench
from halide_autotune.sdk.select.chosen_devices import ChosenDevices, find_devices
from halide_autotune.sdk.select.device_choice import profile_of_devices
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import DeviceError, GeneratorError, SdkError
from halide_autotune.targets.generator.reference import parse_parameters
from halide_autotune.targets.schedule.autoschedulers import GREEDY
from halide_autotune.targets.values.options import check_options, with_whole_paths

Progress = Callable[[str], None]


def check_schedules(
    folder: Path,
    options: CheckOptions | None = None,
    *,
    parameters: Iterable[str] = (),
    progress: Progress = lambda text: None,
    settings: Settings | None = None,
) -> GateResult:
    """Check the schedules that `sdk ship` wrote to a folder: files, generators, outputs and times.

    Each is timed in turns with the default schedule, a size's own with that for all sizes, on a device of the profile
    that it was tuned for.

    Args:
        parameters: generator parameters that replace the recorded ones.
        progress: called with a phrase at every step.

    Returns:
        One result for each schedule and device; what is wrong with one is in it, and no exception.

    Raises:
        SdkError: one of its children: the folder cannot be read, a generator cannot be opened, or an option is wrong.
    """
    settings = settings or read_settings()
    options = with_whole_paths(check_options(options or CheckOptions()))
    manifest, replaced = read_manifest(folder), parse_parameters(parameters)
    workbench = open_workbench(settings, progress)
    sources = given_sources(options.generators, options.build, workbench, settings)
    fit = check_folder(folder, sources, replaced, workbench.halide)
    asked = options.devices
    target = asked.target or profile_of_devices(asked.device, open_inventory(asked.inventory, settings))
    gate = _Gate(folder, options, target, replaced, sources, fit, progress, settings)
    return GateResult(tuple(gate.results(manifest)), gate.of_no_schedule(manifest), fit.notes)


@dataclass
class _Gate:
    """One check of a folder.

    Attributes:
        target: the profile whose schedules are timed; None for all of them.
        replaced: generator parameters in place of the recorded ones.
        fit: what is known without timing.
    """

    folder: Path
    options: CheckOptions
    target: str | None
    replaced: dict[str, str]
    sources: GeneratorSources
    fit: CheckedFolder
    progress: Progress
    settings: Settings

    def __post_init__(self) -> None:
        self._deadline = Deadline.after(self.options.budget_s)
        self._devices: dict[str, ChosenDevices | SdkError] = {}

    def of_no_schedule(self, manifest: ShipManifest) -> tuple[str, ...]:
        """The problems of files that no schedule has alone, such as the header that chooses among them."""
        files = {file for schedule in manifest.schedules for file in schedule.files}
        return tuple(text for file, found in self.fit.by_file.items() if file not in files for text in found)

    def results(self, manifest: ShipManifest) -> Iterator[CheckedSchedule]:
        """Check one schedule after the other."""
        for schedule in manifest.schedules:
            facts, place = schedule.provenance, f"{self.folder / FILE_NAME}: {schedule.header}"
            general = _general(schedule, manifest)
            promise = Promise.of(facts, place, DEFAULT if general is None else GENERAL)
            checked = CheckedSchedule(
                schedule.header,
                schedule.target_profile,
                GateVerdict.NOT_TIMED,
                promised=promise.speed_up,
                shipped_ms=promise.tuned_ms,
            )
            problems = [text for file in schedule.files for text in self.fit.by_file.get(file, ())]
            if problems:
                yield replace(checked, verdict=GateVerdict.STALE, message=" ".join(problems))
            elif self.target not in (None, schedule.target_profile):
                yield replace(checked, message=f"It is for {schedule.target_profile}, and {self.target} is checked.")
            else:
                yield from self._timed(schedule, general, promise, checked)

    def _timed(
        self, schedule: ShippedSchedule, general: str | None, promise: Promise, checked: CheckedSchedule
    ) -> Iterator[CheckedSchedule]:
        """Time a schedule on the devices of its profile.

        Args:
            general: the header that a size's own is compared with; None for the default.
        """
        place = self._places.get(schedule.generator)
        if place is None:
            yield replace(checked, message="Its generator was not given. Pass it with --generator.")
            return
        chosen = self._chosen(schedule)
        if isinstance(chosen, SdkError):
            yield replace(checked, verdict=GateVerdict.NO_DEVICE, message=str(chosen))
            return
        default = chosen.choice.profile.autoscheduler.name.lower()
        if schedule.provenance.get("default_search") == Origin.GREEDY.value:
            default += GREEDY
        headers = default if general is None else str(self.folder / general), str(self.folder / schedule.header)
        asked = self._asked(promise)
        try:
            spec = self._spec(schedule, place)
            with opened_plan_on(chosen, spec, headers, asked, self.progress, self.settings) as plan:
                yield from self._on_devices(self._at_sizes(plan, promise), promise, checked)
        except GeneratorError as error:
            yield replace(checked, verdict=GateVerdict.STALE, message=f"It cannot be built: {error}")

    def _on_devices(self, plan: BenchPlan, promise: Promise, checked: CheckedSchedule) -> Iterator[CheckedSchedule]:
        with open_kernel_bench(replace(plan, needs_all=False), self.progress) as bench:
            for device in plan.devices:
                try:
                    yield self._on_device(bench, device, promise, checked)
                except DeviceError as error:
                    yield replace(checked, verdict=GateVerdict.NO_DEVICE, device=device.name, message=str(error))

    def _on_device(
        self, bench: KernelBench, device: Device, promise: Promise, checked: CheckedSchedule
    ) -> CheckedSchedule:
        def time(name: str, beside: str | None) -> Measurement | MeasureFailure:
            return bench.measure(device, name, turn_settings(bench.plan.settings, name, beside))

        other, schedule = bench.built.symbols
        return TimedCheck(
            device=device,
            other=other,
            schedule=schedule,
            unbuilt=bench.built.failures,
            time=time,
            promise=promise,
            checked=checked,
            tolerance=self.options.slower_share,
            time_left_s=lambda: self._deadline.left_s,
            tell=self.progress,
        ).run()

    def _chosen(self, schedule: ShippedSchedule) -> ChosenDevices | SdkError:
        """The devices for a schedule, or why there are none; each profile's are looked for once."""
        target, halide_target = schedule.target_profile, str(schedule.provenance.get("halide_target"))
        if target not in self._devices:
            try:
                asked = replace(self.options.devices, target=target)
                self._devices[target] = find_devices(asked, self.settings, self.progress)
            except SdkError as error:
                self._devices[target] = error
        chosen = self._devices[target]
        if isinstance(chosen, ChosenDevices) and chosen.choice.profile.halide_target != halide_target:
            here = chosen.choice.profile.halide_target
            return DeviceError(f"It was tuned for {halide_target}, and the profile {target} is {here} here.")
        return chosen

    @cached_property
    def _places(self) -> dict[str, int]:
        return self.sources.places()

    def _spec(self, schedule: ShippedSchedule, place: int) -> GeneratorSpec:
        # What is given may name another generator of the same file.
        file = self.options.generators[place].removesuffix(f":{self.sources.given[place].name}")
        parameters = {**schedule.parameters, **self.replaced}
        return GeneratorSpec(
            f"{file}:{schedule.generator}",
            tuple(f"{key}={value}" for key, value in parameters.items()),
            build=self.options.build,
            estimates=self.options.estimates,
        )

    def _asked(self, promise: Promise) -> RunOptions:
        inputs = self.options.inputs
        if promise.sizes and not self._has_sizes:
            # So that the size of every argument is found out.
            inputs = replace(inputs, also_sizes=promise.sizes[1:] or promise.sizes)
        return asked_options(replace(RunOptions(), inputs=inputs))

    def _at_sizes(self, plan: BenchPlan, promise: Promise) -> BenchPlan:
        if self._has_sizes:
            return replace(plan, inputs=replace(plan.inputs, also_sizes=self.options.inputs.also_sizes))
        return replace(plan, inputs=promise.called_with(plan.inputs))

    @property
    def _has_sizes(self) -> bool:
        return bool(self.options.inputs.sizes or self.options.inputs.also_sizes)


def _general(schedule: ShippedSchedule, manifest: ShipManifest) -> str | None:
    """The header for all sizes beside a size's own; None for any other schedule."""
    if not schedule.for_size:
        return None
    alike = (each for each in manifest.schedules if not each.for_size and each.name == schedule.name)
    return next((each.header for each in alike if each.target_profile == schedule.target_profile), None)
