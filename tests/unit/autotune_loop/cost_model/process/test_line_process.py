"""A child that answers lines: deadlines, deaths, and lines larger than a pipe."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from autotune_loop.cost_model.process.line_process import LineProcess, ModelProcessError

ECHO = "import sys\nfor line in sys.stdin:\n    sys.stdout.write(line)\n    sys.stdout.flush()\n"


def start(program: str, folder: Path) -> LineProcess:
    return LineProcess([sys.executable, "-S", "-c", program], {}, folder / "child.log")


def soon() -> float:
    return time.monotonic() + 240


def test_lines_larger_than_a_pipe_go_there_and_back(tmp_path: Path) -> None:
    child = start(ECHO, tmp_path)
    for size in (1, 1_000_000):
        child.send({"text": "ä" * size}, soon())
        assert child.receive(soon()) == {"text": "ä" * size}
    child.close()
    child.close()


def test_several_answers_at_once_are_kept_apart(tmp_path: Path) -> None:
    child = start("print('{\"id\": 1}'); print('{\"id\": 2}')", tmp_path)
    assert [child.receive(soon()), child.receive(soon())] == [{"id": 1}, {"id": 2}]
    with pytest.raises(ModelProcessError, match="ended with exit code 0"):
        child.receive(soon())


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


def test_a_child_that_does_not_read_is_ended(tmp_path: Path) -> None:
    child = start("import time; time.sleep(600)", tmp_path)
    with pytest.raises(ModelProcessError, match="did not answer in time"):
        child.send({"text": "x" * 1_000_000}, time.monotonic() + 0.2)


def test_an_answer_that_is_no_json_ends_the_child(tmp_path: Path) -> None:
    child = start("print('hello')", tmp_path)
    with pytest.raises(ModelProcessError, match=r"hello.*, which is not JSON"):
        child.receive(soon())


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(ModelProcessError, match="cannot be started"):
        LineProcess([str(tmp_path / "no-python")], {}, tmp_path / "child.log")
    with pytest.raises(ModelProcessError, match="cannot be started"):
        LineProcess([sys.executable], {}, tmp_path / "nowhere" / "child.log")
