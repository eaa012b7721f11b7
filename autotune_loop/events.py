"""What a run tells whoever watches it, as it happens. Each event is a frozen record with a `kind` for machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar


@dataclass(frozen=True)
class RunLength:
    """How much a run is to do.

    Attributes:
        batch_size: schedules timed a round and task.
        tasks: what is tuned: generators with their argument sets.
        budget_s: wall-clock seconds for everything; None sets no limit.
    """

    batch_size: int
    rounds: int
    tasks: int
    budget_s: float | None


@dataclass(frozen=True)
class RunStarted:
    """The run has its folder, device and first weights.

    Attributes:
        options: everything that was asked, as the tables of `run.toml` have it.
    """

    kind: ClassVar[str] = "run_started"
    generator: str
    target: str
    device: str
    clock: str
    parallelism: int
    run_folder: str
    length: RunLength
    resumed: bool
    parallel_unit: str = "thread"
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Notice:
    """A message for the user: what is going on, or something that went wrong and does not end the run."""

    kind: ClassVar[str] = "notice"
    text: str
    warning: bool = False


@dataclass(frozen=True)
class SearchProgress:
    """Schedules sampled so far for a batch."""

    kind: ClassVar[str] = "search_progress"
    round_index: int
    task_index: int
    sampled: int
    wanted: int
    duplicates: int
    failed: int


@dataclass(frozen=True)
class BuildProgress:
    """Kernels built so far for a batch."""

    kind: ClassVar[str] = "build_progress"
    round_index: int
    task_index: int
    built: int
    failed: int
    wanted: int


@dataclass(frozen=True)
class SampleMeasured:
    """One schedule was timed; `parameters` has the values of the tuned ones."""

    kind: ClassVar[str] = "sample_measured"
    round_index: int
    task_index: int
    sample_index: int
    origin: str
    median_ms: float
    predicted_ms: float | None
    clock: str
    done: int
    wanted: int
    device: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SampleFailed:
    """One schedule gave no time."""

    kind: ClassVar[str] = "sample_failed"
    round_index: int
    task_index: int
    sample_index: int | None
    stage: str
    reason: str
    message: str


@dataclass(frozen=True)
class BestImproved:
    """A schedule beat all before it (the default included), and is not only lucky.

    Attributes:
        parameters: values of the tuned parameters; empty where none are tuned.
        range_ms: between which times it will be found at another moment, with 95 % confidence; None if nobody knows.
        timings: how many processes the time is the mean of.
    """

    kind: ClassVar[str] = "best_improved"
    task_index: int
    sample: str
    median_ms: float
    default_ms: float | None
    clock: str
    range_ms: tuple[float, float] | None = None
    timings: int = 1
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Trained:
    """A training ended; ranking scores are on held-out samples, None when there were too few."""

    kind: ClassVar[str] = "trained"
    round_index: int
    accepted: bool
    reason: str
    samples: int
    duration_s: float
    accuracy_before: float | None
    accuracy_after: float | None


@dataclass(frozen=True)
class BatchDone:
    """A batch is sampled, built, timed and learnt from; `stages_s` says where its time went."""

    kind: ClassVar[str] = "batch_done"
    round_index: int
    task_index: int
    measured: int
    failed: int
    stages_s: Mapping[str, float]


@dataclass(frozen=True)
class DeviceChanged:
    """A device is in service again, out of it, or unhealthy: it fails again and again."""

    kind: ClassVar[str] = "device_changed"
    device: str
    state: str
    message: str

    @property
    def text(self) -> str:
        """One line for people."""
        return f"{self.device} is {self.state}" + (f": {self.message}" if self.message else ".")


@dataclass(frozen=True)
class FarmQueue:
    """Where the run stands in its farm's queue, when it has to wait; position 0 when it is served again.

    Attributes:
        position: other runs' measurements that come before its next one.
        start_s: seconds until that begins, as far as is known.
    """

    kind: ClassVar[str] = "farm_queue"
    position: int
    start_s: float

    @property
    def text(self) -> str:
        """One line for people."""
        if self.position == 0:
            return "The farm serves this run again."
        return f"Waiting for a device of the farm: {self.position} before this run, about {self.start_s:.0f} s."


@dataclass(frozen=True)
class PlayOff:
    """The best candidates and the default are being timed again, taking turns.

    Attributes:
        size: the one that they are compared at, with the schedule for all sizes in the default's place; empty for all.
    """

    kind: ClassVar[str] = "play_off"
    task_index: int
    contenders: int
    turn: int
    turns: int
    size: str = ""


Event = (
    RunStarted
    | Notice
    | SearchProgress
    | BuildProgress
    | SampleMeasured
    | SampleFailed
    | BestImproved
    | Trained
    | BatchDone
    | PlayOff
    | DeviceChanged
    | FarmQueue
)
Listener = Callable[[Event], None]


def event_to_dict(event: Event) -> dict[str, object]:
    """A JSON-ready form with its kind under 'event'."""
    return {"event": event.kind, **asdict(event)}


def ignore(event: Event) -> None:
    """The listener of those who do not watch."""
