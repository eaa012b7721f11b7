"""A child that answers with objects: deadlines, deaths, and objects larger than a pipe."""

from __future__ import annotations

import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.cost_model.process.child_process import ChildProcess, ModelProcessError

CONNECTED = (
    "from multiprocessing.connection import Connection\n"
    "requests, answers = Connection(0, writable=False), Connection(1, readable=False)\n"
)


def start(program: str, folder: Path) -> ChildProcess:
    return ChildProcess([sys.executable, "-S", "-c", program], {}, folder / "child.log")


def soon() -> float:
    return time.monotonic() + 240


def test_objects_larger_than_a_pipe_go_there_and_back(tmp_path: Path) -> None:
    child = start(CONNECTED + "while True: answers.send(requests.recv())", tmp_path)
    for size in (1, 1_000_000):
        child.send({"text": "ä" * size}, soon())
        assert child.receive(soon()) == {"text": "ä" * size}
    child.close()
    child.close()


def test_several_answers_at_once_are_kept_apart(tmp_path: Path) -> None:
    child = start(CONNECTED + "answers.send(1); answers.send(2)", tmp_path)
    assert [child.receive(soon()), child.receive(soon())] == [1, 2]
    with pytest.raises(ModelProcessError, match="ended with exit code 0"):
        child.receive(soon())


def test_an_answer_that_came_in_time_may_be_read_later(tmp_path: Path) -> None:
    child = start(CONNECTED + "answers.send(1); requests.recv(); answers.send(2); requests.recv()", tmp_path)
    child.send({}, soon())
    assert child.receive(soon()) == 1
    time.sleep(0.5)
    assert child.receive(time.monotonic() - 1) == 2
    child.close()


def test_the_end_of_the_log_tells_why_a_child_ended(tmp_path: Path) -> None:
    (tmp_path / "child.log").write_text("an older run\n")
    child = start("import sys; sys.exit('out of memory, sorry')", tmp_path)
    with pytest.raises(ModelProcessError, match=r"exit code 1\.(?s:.)*out of memory, sorry") as caught:
        child.receive(soon())
    assert "older run" not in str(caught.value)
    with pytest.raises(ModelProcessError):
        child.send({}, soon())


def test_a_killed_child_is_told_by_its_signal(tmp_path: Path) -> None:
    child = start("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", tmp_path)
    with pytest.raises(ModelProcessError, match=f"killed by signal {signal.SIGKILL:d}"):
        child.receive(soon())


@pytest.mark.parametrize("deadline_s", [0.0, 0.2])
def test_a_silent_child_is_ended(tmp_path: Path, deadline_s: float) -> None:
    child = start("import time; time.sleep(600)", tmp_path)
    with pytest.raises(ModelProcessError, match="did not answer in time"):
        child.receive(time.monotonic() + deadline_s)
    with pytest.raises(ModelProcessError):
        child.receive(soon())


def test_whether_there_is_an_answer_is_told_without_reading_it(tmp_path: Path) -> None:
    child = start(CONNECTED + "requests.recv(); answers.send(1); requests.recv()", tmp_path)
    assert not child.has_answer(0.0)
    child.send({}, soon())
    assert child.has_answer(240.0) and child.has_answer(0.0)
    assert child.receive(soon()) == 1
    child.kill()
    assert child.has_answer(240.0), "its end can be read"
    with pytest.raises(ModelProcessError, match="killed by signal 9"):
        child.receive(soon())
    assert child.has_answer(0.0)
    child.close()


def test_a_child_that_is_killed_ends_a_wait_in_another_thread(tmp_path: Path) -> None:
    child = start(CONNECTED + "answers.send(1); requests.recv()", tmp_path)
    assert child.receive(soon()) == 1
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(child.receive, soon())
        child.kill()
        with pytest.raises(ModelProcessError, match="killed by signal 9"):
            waiting.result()


def test_a_child_that_does_not_read_is_ended(tmp_path: Path) -> None:
    child = start("import time; time.sleep(600)", tmp_path)
    with pytest.raises(ModelProcessError, match="did not answer in time"):
        child.send({"text": "x" * 1_000_000}, time.monotonic() + 0.2)


def test_an_answer_that_is_no_object_is_an_error(tmp_path: Path) -> None:
    child = start("print('hello')", tmp_path)
    with pytest.raises(ModelProcessError, match="ended with exit code 0"):
        child.receive(soon())


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(ModelProcessError, match="cannot be started"):
        ChildProcess([str(tmp_path / "no-python")], {}, tmp_path / "child.log")
    with pytest.raises(ModelProcessError, match="cannot be started"):
        ChildProcess([sys.executable], {}, tmp_path / "nowhere" / "child.log")
