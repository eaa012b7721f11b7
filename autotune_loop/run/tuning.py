"""`tune`: one run of the loop, from what is asked to a result."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace

from halide_autotune.autotune_loop.cost_model.learner import Learner
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.local_executor import LocalExecutor
from halide_autotune.autotune_loop.farm.use import FARM_AHEAD_S, FarmUse
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.measure.machine_watch import quiet_patience_s
from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.run.rounds import Rounds
from halide_autotune.autotune_loop.run.setup import (
    own_weights,
    prepare_toolchain,
    run_context,
    run_record,
    run_started,
    start_weights,
)
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.lease.token import lasting_token
from halide_autotune.devices.local.cores import CoreTurns
from halide_autotune.targets.errors import BudgetError, RunFolderError, SdkError
from halide_autotune.targets.process.stop_signal import StopSignal

_SHARED = (
    "Another run tunes on this machine: the two take turns on its cores, so each takes about twice as long. "
    "Give this one a longer --budget, or let the other end first."
)


def tune(
    run: PreparedRun, workspace: Workspace, listen: Listener, stop: StopSignal, started_s: float | None = None
) -> TuneResult:
    """Run the loop to its end: rounds done, budget spent, nothing new to find, or stopped.

    Setting `stop` ends the run cleanly with the best so far; so does a KeyboardInterrupt.

    Args:
        started_s: the monotonic time from which the budget counts; None for now.

    Raises:
        BudgetError: the budget was over before a schedule was timed.
        GeneratorError: the generator cannot be tuned; the message shows the fix.
        RunFolderError: the run folder is in use, damaged, full, or of another run.
        ToolchainError, EmulatorError, DeviceError, FarmError, WeightsError: what is missing or broken.
    """
    started_s = time.monotonic() if started_s is None else started_s
    weights = start_weights(run)
    record = run_record(run, workspace, weights)
    try:
        store = RunStore(run.folder, record, resume=run.resume)
        try:
            context, build_slots = run_context(run, _with_own_leases(run, workspace, store), store.work)
            listen(run_started(run, store.folder))
            started_s += prepare_toolchain(run, workspace, listen, stop)
            turns = CoreTurns(workspace.lock_folder) if context.workspace.cores.take_turns else None
            with (
                contextlib.nullcontext() if turns is None else _sharing(turns, listen),
                Learner(
                    store,
                    weights,
                    run.spec,
                    workspace.environment,
                    turns,
                    listen,
                    own_weights(run),
                    is_transferred=run.is_transferred,
                ) as learner,
                contextlib.closing(_open_executor(context, build_slots, run.farm, listen)) as executor,
            ):
                budget = RunBudget(run.options.limits.budget_s, started_s)
                measure = run.options.measure
                names = [device.name for device in run.devices]
                ahead_s = 0.0 if run.farm is None else FARM_AHEAD_S
                at_once = min(device.at_once for device in run.devices)
                dispatcher = Dispatcher(
                    executor,
                    names,
                    store.database,
                    listen,
                    measure.patience_s,
                    run.report_health,
                    ahead_s,
                    at_once,
                    quiet_patience_s(measure.patience_s, budget.budget_s, measure.quiet_patience_s),
                )
                rounds = Rounds(run, store, context, executor, dispatcher, learner, budget, listen, stop)
                return rounds.run(started_s)
        except BudgetError:
            raise  # it can be continued
        except SdkError:
            store.discard_if_unused()
            raise
        finally:
            store.close()
    except OSError as error:
        raise RunFolderError(
            f"The run in {run.folder} failed: {error.strerror or error}"
            + (f" ({error.filename})." if error.filename else "."),
            next_step="If the disk is full, free some space. Then continue with --resume.",
        ) from error


@contextlib.contextmanager
def _sharing(turns: CoreTurns, listen: Listener) -> Iterator[None]:
    """Tell if other runs use this machine's cores, too; while it lasts they are told of this one."""
    with turns.joined() as has_others:
        if has_others:
            listen(Notice(_SHARED))
        yield


def _with_own_leases(run: PreparedRun, workspace: Workspace, store: RunStore) -> Workspace:
    """The workspace, with a token of the run's: resumed after a kill, it takes its devices back at once.

    Nobody else has the folder meanwhile. On a farm the workers hold the leases.
    """
    connections = workspace.connections
    if connections is None or run.farm is not None or all(device.remote is None for device in run.devices):
        return workspace
    return replace(workspace, connections=replace(connections, own_token=lasting_token(store.folder)))


def _open_executor(context: RunContext, build_slots: int, farm: FarmUse | None, listen: Listener) -> Executor:
    if farm is None:
        return LocalExecutor(context, build_slots)
    # Imported here: Dask takes half a second, and a run on this machine does not need it.
    from halide_autotune.autotune_loop.execute.farm_executor import FarmExecutor

    return FarmExecutor(context, build_slots, farm, listen)
