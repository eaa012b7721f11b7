"""From what a run knows of a pipeline's schedules to candidates that techniques propose as data."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass

from halide_autotune.autotune_loop.candidate import (
    ORIGINS,
    Candidate,
    Origin,
    SchedulePoint,
    SearchedSchedule,
    kernel_symbol,
    technique_of,
)
from halide_autotune.autotune_loop.cost_model.dataset import MIN_UNIQUE_SCHEDULES
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import BuildSchedule
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.search.code_builds import Build
from halide_autotune.autotune_loop.search.known.run_drafts import RunDrafts
from halide_autotune.autotune_loop.search.known.run_populations import RunPopulations, TimedSchedule
from halide_autotune.autotune_loop.search.left_candidates import LeftCandidates
from halide_autotune.autotune_loop.search.lowering import RunLowerings
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.models.tree_gru import TrainTreeGru
from halide_autotune.autotune_loop.search.models.vector_faults import VectorFaults
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.search.run_pace import RunPace
from halide_autotune.autotune_loop.search.techniques.bandit import Outcome, divide
from halide_autotune.autotune_loop.search.techniques.registry import PlugInTechnique, load_techniques
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.extension_point import told
from halide_autotune.targets.generator.run import GeneratorFailureReason
from halide_autotune.targets.pipeline.shape import PipelineShape
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.schedule.header import read_schedule

# What is proposed as it is, by the name of where it is from.
_FOUND: Mapping[tuple[str, ...], Origin] = {
    (origin.value,): origin for origin in (Origin.INCUMBENT, Origin.OWN_SCHEDULE, Origin.HISTORY)
}
# Of the first batch so much is Halide's samples, which take longer to find and are seldom as fast. The rest is
# sketches, and so is the second batch, which is made while the first is timed.
_FIRST_SHARE = 0.25
# What takes less is no search: a batch without samples may have the stage, too.
_LEAST_SEARCH_S = 0.1
_WITHOUT_VECTORS = "loops for vectors that fail"


def _place(technique: str) -> tuple[int, str]:
    """Halide's samples, then sketches, then what packages give, then evolution."""
    places: dict[str, int] = {TechniqueName.SAMPLING: 0, TechniqueName.SKETCHES: 1, TechniqueName.EVOLUTION: 3}
    return places.get(technique, 2), technique


def may_propose(context: RunContext, task: TuningTask) -> bool:
    """Whether other techniques than Halide's own search may propose schedules for a task.

    A GPU's loops, and pipelines whose shape changes with tuned parameters, are left to Halide's search.
    """
    is_left = context.profile.machine.gpu is not None or task.space is not None
    return not is_left and {*context.spec.options.search.technique} != {TechniqueName.SAMPLING}


@dataclass
class ScheduleProposals:
    """Proposes candidates for any task: called in one thread.

    Attributes:
        known: what earlier runs found for an argument set's pipeline, the most promising first.
        stop: set once no batch is wanted any more; what is asked for then raises `NotWantedError`.
        drafts: of the run's schedules.
        left: what was chosen and is not built yet.
        prior: what the loop nests of other pipelines say.
        train: what trains networks that walk loops.
    """

    executor: Executor
    store: RunStore
    context: RunContext
    listen: Listener
    known: Callable[[int, PipelineShape], Sequence[KnownSchedule]]
    stop: StopSignal
    prior: InitVar[NestPrior | None] = None
    train: InitVar[TrainTreeGru | None] = None

    def __post_init__(self, prior: NestPrior | None, train: TrainTreeGru | None) -> None:

        def tell(fault: str) -> None:
            self.listen(Notice(fault, warning=True))

        self._techniques = load_techniques(self.context.spec.options.search, tell, prior, train)
        self._pace = RunPace(self.executor, self.store, self.context)
        self.drafts = RunDrafts(self.executor, self.store, self.context, self.listen, self.stop)
        self._lowerings = RunLowerings(self._pace, self.drafts.json, self.listen)
        self._populations = RunPopulations(
            self.store, self.context, self.drafts, self._lowerings, self._asked_for, self.listen
        )
        self._faulty: set[str] = set()
        self._without_search: set[int] = set()
        self.left = LeftCandidates()

    def begin(self) -> None:
        """Begin with what the first batch is proposed from, before anything can be built for it."""
        if may_propose(self.context, self.context.tasks[0]):
            self.drafts.begin(0)

    def techniques(self, task_index: int) -> tuple[str, ...]:
        """Those that are asked for and can be used for a task."""
        asked = self.context.spec.options.search.technique
        task = self.context.tasks[task_index]
        names = self.drafts.names(task_index) if may_propose(self.context, task) else None
        if names is None:
            return (TechniqueName.SAMPLING,)
        refused = set() if names.are_plain and task_index not in self._without_search else {TechniqueName.SAMPLING}
        # Evolution comes last, in whatever order they are named: it takes what the others have no schedules for.
        return tuple(sorted({*asked} - refused - self._faulty, key=_place)) or (TechniqueName.SAMPLING,)

    def samples_the_rest(self, task_index: int) -> bool:
        """Whether Halide's search gives what the other techniques have no schedules for: evolution always has some."""
        techniques = self.techniques(task_index)
        has_others = TechniqueName.SAMPLING in techniques and len(techniques) > 1
        return has_others and TechniqueName.EVOLUTION not in techniques

    def leave_out_search(self, task_index: int) -> None:
        """Propose no samples of Halide's own search for a task: none would succeed."""
        self._without_search.add(task_index)

    def divide(self, work: BatchInProgress, tried: Sequence[TimedSchedule], count: int) -> dict[str, int]:
        """How many schedules of a batch each technique proposes."""
        techniques = self.techniques(work.task_index)
        if len(techniques) == 1:
            return {techniques[0]: count}
        outcomes = self._outcomes(work, tried)
        if outcomes:
            return divide(outcomes, techniques, count)
        sampled = self._first_samples(count) if work.round_index == 0 and TechniqueName.SAMPLING in techniques else 0
        second = next(each for each in techniques if each != TechniqueName.SAMPLING)
        # The last one takes what the others have no schedules for.
        return {**dict.fromkeys(techniques, 0), TechniqueName.SAMPLING: sampled, second: count - sampled}

    def _first_samples(self, count: int) -> int:
        """How many of the first batch are Halide's samples: enough for its cost model, if that is what they are for."""
        if self.context.only_records:
            return min(count, max(MIN_UNIQUE_SCHEDULES, count // 2))
        return round(_FIRST_SHARE * count)

    def batch_size(self, task_index: int, most: int, left_s: float | None) -> int:
        """How many schedules a batch has; see `RunPace.batch_size`. Without evolution there are no generations."""
        if TechniqueName.EVOLUTION not in self.techniques(task_index):
            return most
        return self._pace.batch_size(task_index, most, left_s)

    def population(self, work: BatchInProgress, tried: Sequence[TimedSchedule]) -> Population | None:
        """What a batch is proposed from; None where only Halide's search proposes."""
        if not may_propose(self.context, self.context.tasks[work.task_index]):
            return None
        return self._populations.of(work.task_index, work.round_index, tried)

    def propose(
        self,
        work: BatchInProgress,
        technique: str,
        population: Population,
        known: Collection[str],
        count: int,
        first: int,
    ) -> list[Candidate]:
        """Up to `count` candidates that are not known yet, kept in the run's folder.

        Args:
            known: hashes of the schedules that were chosen before.
            first: the first candidate's place in the batch.
        """
        if count < 1:
            return []  # a technique that is asked fits its models, and lowers children, before the first is there
        seed = f"{technique}/{self._seed(work)}"
        # Those of Halide's samples are known by their features.
        before = {one.symbol: one.draft for one in population.tried}
        before |= {one.symbol: one.draft for one in population.failed}
        taken = {*known, *(self.drafts.sha256_of(*one, work.task_index) for one in before.items())}
        candidates: list[Candidate] = []
        for proposal, sha256 in self._proposals(technique, population, count, seed, work.task_index):
            if len(candidates) == count:
                break
            if sha256 not in taken:
                taken.add(sha256)
                candidates.append(self._keep(work, technique, proposal, sha256, first + len(candidates)))
        return candidates

    def _proposals(
        self, technique: str, population: Population, count: int, seed: str, task_index: int
    ) -> Iterator[tuple[Proposal, str]]:
        """What a technique proposes, with the hashes of the schedules. A plug-in that fails is not asked again, nor is
        any that the pipeline is too deep for.

        Loops take the place of vectors that fail.
        """
        faults, of_vectors = self._faults(population), random.Random(f"vectors/{seed}")
        try:
            for proposal in self._techniques[technique].propose(population, count, random.Random(seed)):
                draft = faults.mended(proposal.draft, of_vectors)
                if draft is not proposal.draft:
                    proposal = Proposal(draft, proposal.parents, (*proposal.moves, _WITHOUT_VECTORS))
                yield proposal, self.drafts.sha256(draft, task_index)
        except (Exception, SystemExit) as error:
            asked = self._techniques[technique]
            if isinstance(asked, PlugInTechnique):
                why = f"{asked.title} failed, and is not asked again in this run: {told(error)}"
            elif isinstance(error, RecursionError):
                why = f"{technique} is not asked again in this run: too many Funcs are computed within each other."
            else:
                raise
            self._faulty.add(technique)
            self.listen(Notice(why, warning=True))

    def _faults(self, population: Population) -> VectorFaults:
        names = population.names
        of_good, of_failed = (
            (self.drafts.causes_of(one, names) for one in drafts) for drafts in (population.tried, population.failed)
        )
        return VectorFaults(names, of_good, of_failed)

    def editor(
        self, work: BatchInProgress, population: Population | None
    ) -> Callable[[SearchedSchedule], Draft | None] | None:
        """What edits a batch's samples of Halide's search; None where no vectors are known or suspected to fail."""
        if population is None:
            return None
        has_wrong = population.names.shape.has_wrong_vectors
        if not (has_wrong or (self.context.profile.has_doubtful_vectors and population.failed)):
            return None
        faults, source = self._faults(population), random.Random(f"samples/{self._seed(work)}")
        return lambda searched: self.drafts.edited(searched, faults, source)

    def keep_edited(
        self, work: BatchInProgress, draft: Draft, searched: SearchedSchedule, place: int
    ) -> list[Candidate]:
        """Keep a sample that was edited as a candidate in that place of the batch; none if it is known already."""
        sha256 = self.drafts.sha256(draft, work.task_index)
        if sha256 in self.store.database.known_schedules(work.task_index):
            return []
        proposal = Proposal(draft, moves=(_WITHOUT_VECTORS,))
        return [self._keep(work, TechniqueName.SAMPLING, proposal, sha256, place, searched.duration_s)]

    def submit(self, candidate: Candidate) -> Build:
        """Start to build a candidate that was proposed."""
        folder, text = self.store.objects / candidate.symbol, self.schedule_json(candidate.sample)
        task_index, limit_s = candidate.task_index, self._pace.limit_s(candidate.task_index)
        describes = self.wants_nest(task_index, candidate.sample)
        build = BuildSchedule(folder, task_index, candidate.symbol, text, limit_s, describes=describes)
        return self.executor.submit(build)

    def wants_nest(self, task_index: int, sample: str) -> bool:
        """Whether to write a schedule's loop nest as its code is generated: models want it, and none is there."""
        if not (self._lowerings.are_wanted and may_propose(self.context, self.context.tasks[task_index])):
            return False
        # Where there is no C++ compiler, the pipeline has no description, and nothing is lowered.
        is_there = self.store.lowered_path(self.store.samples / sample).is_file()
        return not is_there and self.drafts.names(task_index) is not None

    def schedule_json(self, sample: str) -> str:
        """A schedule of the run as data, by its folder below samples/.

        Raises:
            GeneratorError: its header cannot be read.
        """
        return print_json(parse_schedule(read_schedule(self.store.schedule_path(self.store.samples / sample))))

    def _asked_for(self, task_index: int, shape: PipelineShape) -> Sequence[KnownSchedule]:
        """What earlier runs found, if a technique asks for it; what a package's does is not known."""
        # Looked for in any case: the run's folder keeps what the pipeline is.
        found = self.known(task_index, shape)
        asking_nothing: set[str] = {*TechniqueName} - {TechniqueName.SKETCHES, TechniqueName.EVOLUTION}
        return () if {*self.techniques(task_index)} <= asking_nothing else found

    def _seed(self, work: BatchInProgress) -> str:
        return f"{self.context.spec.options.search.seed}/{work.round_index}/{work.task_index}"

    def _keep(
        self,
        work: BatchInProgress,
        technique: str,
        proposal: Proposal,
        sha256: str,
        sample_index: int,
        search_s: float = 0.0,
    ) -> Candidate:
        origin = ORIGINS.get(technique, Origin.PLUG_IN)
        if origin is Origin.SKETCH:
            origin = _FOUND.get(proposal.moves, origin)
        plug_in = technique if origin is Origin.PLUG_IN else ""
        function_name = self.context.tasks[work.task_index].function_name
        candidate = Candidate(
            round_index=work.round_index,
            task_index=work.task_index,
            sample_index=sample_index,
            symbol=kernel_symbol(function_name, *work.place, sample_index),
            point=SchedulePoint(origin, proposal.parents, proposal.moves, plug_in=plug_in),
            schedule_sha256=sha256,
            search_s=search_s,
        )
        header = print_header(self.drafts.schedule(proposal.draft, work.task_index), self.context.sample_file_name)
        kept = self.store.keep_schedule(candidate, header)
        self._lowerings.keep(work.task_index, sha256, candidate.sample)
        return kept

    def _outcomes(self, work: BatchInProgress, tried: Sequence[TimedSchedule]) -> list[Outcome]:
        times_ms = {one.symbol: one.time_ms for one in tried}
        candidates = self.store.database.candidates(work.task_index)
        failed = self._populations.failed(candidates, work.task_index, work.round_index, tried)
        build_s, timing_s = self.store.database.build_times_s(), self._pace.timing_s(work.task_index)
        # A batch's samples are chosen from so many times as many.
        searches, limit_s = self.context.spec.options.search.pool_factor, self._pace.limit_s(work.task_index)

        def cost_s(one: Candidate) -> float:
            is_late = one.symbol not in build_s and failed.get(one.symbol) == GeneratorFailureReason.TIMED_OUT.value
            building_s = limit_s if is_late else build_s.get(one.symbol, 0.0)
            return (searches * one.search_s + building_s) / self.executor.build_slots + (0.0 if is_late else timing_s)

        outcomes = [
            Outcome(technique_of(one.point), times_ms.get(one.symbol), cost_s(one), one.round_index)
            for one in candidates
            # The default is in any case, whatever it brings.
            if not one.point.origin.gives_default and (one.symbol in times_ms or one.symbol in failed)
        ]
        outcomes += self._searches_for_nothing(work.task_index, candidates)
        return sorted(outcomes, key=lambda one: one.round_index)

    def _searches_for_nothing(self, task_index: int, candidates: Sequence[Candidate]) -> Iterator[Outcome]:
        """A failure of Halide's search for each batch that it was asked for and has given nothing: it took time."""
        given = {one.round_index for one in candidates if technique_of(one.point) == TechniqueName.SAMPLING}
        for task, round_index, stages_s in self.store.database.batches():
            search_s = stages_s.get("search", 0.0)
            if task == task_index and search_s >= _LEAST_SEARCH_S and round_index not in given:
                yield Outcome(TechniqueName.SAMPLING, None, search_s, round_index)
