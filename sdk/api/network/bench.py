"""`sdk.bench_network`: a network that is built, checked layer by layer, and timed beside others."""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.measure.peers.peer_process import PeerProcess
from halide_autotune.autotune_loop.network.layer_check import CheckedLayer
from halide_autotune.autotune_loop.network.library.build_library import NetworkLibrary
from halide_autotune.autotune_loop.network.library.run_library import NetworkTimes, compute_on, time_on
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.local.cores import CoreTurns, plan_cores
from halide_autotune.devices.remote.open import device_transport
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.transport import Transport
from halide_autotune.sdk.api.network.build import (
    NetworkTarget,
    OpenedNetwork,
    Progress,
    build_opened,
    check_target,
    open_network,
)
from halide_autotune.sdk.api.network.run_schedules import run_schedules
from halide_autotune.sdk.inventory.lookup import open_inventory
from halide_autotune.sdk.options.generator_spec import asked_options
from halide_autotune.sdk.project.preparation import open_workbench
from halide_autotune.sdk.select.chosen_devices import ChosenDevices, asked_profile, find_devices
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import ToolchainError, UsageError
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.scratch_folder import scratch_folder

DEFAULT, TUNED = "default", "tuned"
# A turn of one contender.
_TURN_S = 1.0
_LEAST_REPETITIONS, _MOST_REPETITIONS = 3, 1000


@dataclass(frozen=True)
class BenchedLayer:
    """A layer of a network.

    Attributes:
        name: the model's layers that it computes.
        checks: by the schedules ('default', 'tuned'); none where it is checked with the layer after it.
        times_ms: of one call, likewise; none where nothing was timed.
    """

    name: str
    checks: Mapping[str, CheckedLayer]
    times_ms: Mapping[str, float]


@dataclass(frozen=True)
class BenchedNetwork:
    """A network that was checked and timed.

    Attributes:
        network: its name.
        outputs: how far each output is from the reference's, by the schedules.
        times_ms: of one call of the whole network, by who computes it; none on an emulated device.
        ranges_ms: the least and the most of its turns, likewise.
        not_timed: who could not be timed, and why.
        not_tuned: the operators that the run has no schedule for, with their layers; they have their generators' own.
        reference: who says what is right: Keras, or TensorFlow Lite's reference kernels.
    """

    network: str
    device: Device
    layers: tuple[BenchedLayer, ...]
    outputs: Mapping[str, tuple[CheckedLayer, ...]]
    times_ms: Mapping[str, float] = field(default_factory=dict)
    not_timed: Mapping[str, str] = field(default_factory=dict)
    not_tuned: tuple[str, ...] = ()
    reference: str = "Keras"
    ranges_ms: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def wrong(self) -> tuple[tuple[str, CheckedLayer], ...]:
        """What is not as the reference computes it of the same numbers, with its schedules."""
        return tuple((name, check) for name, check in self._checks if check.is_wrong)

    @property
    def not_judged(self) -> tuple[tuple[str, CheckedLayer], ...]:
        """What follows from something wrong, with its schedules."""
        return tuple((name, check) for name, check in self._checks if check.follows_from is not None)

    @property
    def _checks(self) -> tuple[tuple[str, CheckedLayer], ...]:
        of_layers = [(name, check) for layer in self.layers for name, check in layer.checks.items()]
        of_outputs = [(name, check) for name, checks in self.outputs.items() for check in checks]
        return (*of_layers, *of_outputs)

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form."""
        return {
            "model": self.network,
            "device": self.device.name,
            "clock": self.device.clock.value,
            "times_ms": dict(self.times_ms),
            "ranges_ms": {name: list(each) for name, each in self.ranges_ms.items()},
            "not_timed": dict(self.not_timed),
            "not_tuned": list(self.not_tuned),
            "reference": self.reference,
            "is_right": not self.wrong,
            "outputs": {name: [check.to_dict() for check in checks] for name, checks in self.outputs.items()},
            "layers": [
                {
                    "name": layer.name,
                    "checks": {name: check.to_dict() for name, check in layer.checks.items()},
                    "times_ms": dict(layer.times_ms),
                }
                for layer in self.layers
            ],
        }


def bench_network(
    model: str,
    *,
    target: str | None = None,
    device: str | Sequence[str] = (),
    run: Path | None = None,
    options: RunOptions | None = None,
    turns: int = 5,
    progress: Progress = lambda text: None,
    settings: Settings | None = None,
) -> BenchedNetwork:
    """Build a network, compare each layer and the outputs with Keras on random input, and time it.

    A `.tflite` file is compared with TensorFlow Lite's reference kernels instead; what it has in bytes bit for bit.
    Contenders take turns on the same cores with the same number of threads: the network with the default schedules,
    with those of the run, and where the target runs on this machine TensorFlow (a `tf.function`; not of a `.tflite`
    file) and LiteRT (XNNPACK).
    On an emulated device nothing is timed.

    Args:
        model, run: as for `build_network`.
        target, device: as for `sdk.bench`; one device. Without a target it is that of the run, if there is one.
        options: those of the devices.
        turns: how often each is timed; the medians count.
        progress: called with a phrase at every step that may take long.

    Raises:
        NetworkError: the model cannot be read, or has layers that there is no operator for.
        RunFolderError: the run is of another network or target, or of other features of it.
        SdkError: a subclass, for everything else that a user can fix.
    """
    settings = settings or read_settings()
    if turns < 1:
        raise UsageError(f"A network is timed in at least 1 turn, not {turns}.")
    asked = asked_options(options, target, device)
    schedules = None if run is None else run_schedules(run)
    if schedules is not None:
        asked = replace(asked, devices=schedules.filled_in(asked.devices))
    if len(asked.devices.device) > 1:
        raise UsageError("A network is timed on one device.", next_step="Give --device once.")
    profile = asked_profile(asked.devices, open_inventory(asked.devices.inventory, settings), settings)
    check_target(profile, asked.devices.target_features, schedules)
    chosen = find_devices(asked.devices, settings, progress)
    if chosen.choice.note:
        progress(chosen.choice.note)
    toolchain, workbench = chosen.open_toolchain(settings), open_workbench(settings, progress)
    place = NetworkTarget(chosen.choice.profile, toolchain, workbench)
    with scratch_folder("network") as folder, _opened_bench(chosen, folder, settings) as bench:
        opened = open_network(model, place.profile.halide_target, schedules)
        libraries = {}
        for name, of_run in ((DEFAULT, None), (TUNED, schedules)):
            if name == DEFAULT or of_run is not None:
                progress(f"building the network with {name} schedules")
                libraries[name] = build_opened(opened, place, of_run, folder / name, progress, settings)
        for name, library in libraries.items():
            bench.transport.push(library.benchmark, name)
        found = _benched(opened, replace(bench, libraries=libraries), model, turns, progress)
    return replace(found, not_tuned=libraries[TUNED].not_tuned if TUNED in libraries else ())


@dataclass(frozen=True)
class _Bench:
    """A device with the benchmarks on it.

    Attributes:
        cores: of this machine, which a device of this machine uses.
        turns: with builds of this machine; None where they have other cores.
        libraries: whose benchmarks they are, by their names there.
    """

    device: Device
    transport: Transport
    folder: Path
    cores: frozenset[int]
    turns: CoreTurns | None
    settings: Settings
    libraries: Mapping[str, NetworkLibrary] = field(default_factory=dict)

    def measuring(self) -> contextlib.AbstractContextManager[None]:
        """Have the cores alone."""
        return contextlib.nullcontext() if self.turns is None else self.turns.measuring()


@contextlib.contextmanager
def _opened_bench(chosen: ChosenDevices, folder: Path, settings: Settings) -> Iterator[_Bench]:
    device, workspace = chosen.choice.devices[0], chosen.workspace(settings)
    if device.clock_plugin is not None:
        # Nothing is timed there, and its simulated clock serves one thread.
        device = replace(device, clock=Clock.EMULATED, clock_plugin=None)
    usable = frozenset(os.sched_getaffinity(0))
    cores = plan_cores(usable, min(device.measuring_cores, len(usable)))
    transport = device_transport(
        device,
        chosen.choice.profile,
        folder / "device",
        workspace.environment,
        cores.measure,
        workspace.connections,
        ContentCache(settings.cache_folder),
    )
    turns = CoreTurns(workspace.lock_folder) if cores.take_turns else None
    with contextlib.closing(transport):
        if isinstance(transport, AgentTransport):
            # Whether it can be reached. It is leased once there is something to run.
            transport.sense()
        yield _Bench(device, transport, folder, cores.measure, turns, settings)


def _benched(opened: OpenedNetwork, bench: _Bench, model: str, turns: int, progress: Progress) -> BenchedNetwork:
    layers: dict[str, tuple[CheckedLayer | None, ...]] = {}
    outputs: dict[str, tuple[CheckedLayer, ...]] = {}
    read, inputs = opened.model, opened.model.random_inputs()
    for name, library in bench.libraries.items():
        progress(f"comparing the network with {name} schedules on {bench.device.name} with {read.reference}")
        found = compute_on(bench.transport, name, library, inputs, bench.folder)
        made = {step.output.name: each for step, each in zip(library.steps.steps, found.layers, strict=True)}
        checked = read.check(inputs, made, found.outputs)
        layers[name], outputs[name] = checked.layers, checked.outputs
    timed = _Timed() if bench.device.is_emulated else _timed(bench, model, turns, progress)
    benched = []
    for index, step in enumerate(opened.steps.steps):
        # What is copied at the end has no operator.
        of_layer = {name: found[index] for name, found in layers.items() if index < len(found)}
        known = {name: check for name, check in of_layer.items() if check is not None}
        times_ms = {name: each[index] for name, each in timed.layers_ms.items()}
        benched.append(BenchedLayer(step.name, known, times_ms))
    return BenchedNetwork(
        read.network.name,
        bench.device,
        tuple(benched),
        outputs,
        {name: statistics.median(turns_ms) for name, turns_ms in timed.turns_ms.items()},
        timed.failures,
        reference=read.reference,
        ranges_ms={name: (min(turns_ms), max(turns_ms)) for name, turns_ms in timed.turns_ms.items()},
    )


@dataclass(frozen=True)
class _Timed:
    """Medians of one call, by who computes it: of each turn, and of our own by layer over all turns."""

    turns_ms: Mapping[str, Sequence[float]] = field(default_factory=dict)
    layers_ms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


def _timed(bench: _Bench, model: str, turns: int, progress: Progress) -> _Timed:
    own: dict[str, list[NetworkTimes]] = {name: [] for name in bench.libraries}
    with contextlib.ExitStack() as exits:
        peers, found_peers = _opened_peers(bench, model, exits, progress)
        failures = {name: why for name, why in found_peers.items() if why is not None}
        peers_ms: dict[str, list[float]] = {name: [] for name in found_peers if name not in failures}
        repetitions: dict[str, int] = {}
        for turn in range(turns + 1):
            progress(f"timing: turn {turn} of {turns}" if turn else "timing: how often in a turn")
            for name, library in bench.libraries.items():
                count = repetitions.get(name, _LEAST_REPETITIONS)
                with bench.measuring():
                    found = time_on(bench.transport, name, library, count, bench.device.threads, bench.folder)
                # It is computed as a whole, and layer by layer.
                repetitions.setdefault(name, _repetitions(2 * found.median_ms))
                own[name] += [found] if turn else []
            for name, times_ms in peers_ms.items():
                assert peers is not None
                with bench.measuring():
                    median_ms = peers.median_ms(name, repetitions.get(name, _LEAST_REPETITIONS))
                repetitions.setdefault(name, _repetitions(median_ms))
                times_ms += [median_ms] if turn else []
    turns_ms = {name: [each.median_ms for each in found] for name, found in own.items()} | peers_ms
    by_layer = {name: zip(*(each.layers for each in found), strict=True) for name, found in own.items()}
    layers_ms = {
        name: tuple(statistics.median(each.median_ms for each in one) for one in layers)
        for name, layers in by_layer.items()
    }
    return _Timed(turns_ms, layers_ms, failures)


def _repetitions(call_ms: float) -> int:
    """How often in a turn."""
    return min(max(round(_TURN_S * 1e3 / max(call_ms, 1e-3)), _LEAST_REPETITIONS), _MOST_REPETITIONS)


def _opened_peers(
    bench: _Bench, model: str, exits: contextlib.ExitStack, progress: Progress
) -> tuple[PeerProcess | None, dict[str, str | None]]:
    """The process of the others, where the network runs on this machine; and why one of them cannot be timed, or None,
    by its name."""
    if not bench.device.uses_host_cores:
        return None, {}
    progress("starting the other contenders")
    log, environment = bench.folder / "peers.log", bench.settings.environment
    try:
        peers = exits.enter_context(PeerProcess(model, bench.device.threads, bench.cores, log, environment))
        return peers, peers.await_start()
    except ToolchainError as error:
        return None, dict.fromkeys(("TensorFlow", "LiteRT"), error.message)
