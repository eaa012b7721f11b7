"""A run's explanation is read back as it was written, for the schedules that it explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.explain.explained import Explanation, MachineLimits
from halide_autotune.autotune_loop.explain.explanation_file import read_explanations, write_explanations
from halide_autotune.targets.errors import RunFolderError
from tests.explained_schedules import counts, func, schedule

ONE = schedule("the default", func(counts("out", tasks=3), 1e-3, is_output=True))
EXPLANATION = Explanation("pi", "wall", 4, (ONE, ONE), MachineLimits(1e10, 1e11), 2**20, ("out: whole.",), "Memory.")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    plain = Explanation("pi", "simulated", 4, (ONE, ONE))
    write_explanations(tmp_path, {0: ("aa", [EXPLANATION, plain]), 2: ("bb", [plain])})
    assert read_explanations(tmp_path, {0: "aa", 2: "bb"}) == {0: (EXPLANATION, plain), 2: (plain,)}


def test_another_winner_is_not_explained(tmp_path: Path) -> None:
    assert read_explanations(tmp_path, {0: "aa"}) == {}
    write_explanations(tmp_path, {0: ("aa", [EXPLANATION])})
    assert read_explanations(tmp_path, {0: "bb"}) == {}


@pytest.mark.parametrize("text", ["", "{", '{"winners": [{}]}', '{"winners": [{"argument_set": 0}], "more": 1}'])
def test_a_damaged_file_is_one_message(tmp_path: Path, text: str) -> None:
    (tmp_path / "explanation.json").write_text(text)
    with pytest.raises(RunFolderError, match=r"explanation\.json") as told:
        read_explanations(tmp_path, {0: "aa"})
    assert told.value.next_step == f"Explain the run again: sdk explain {tmp_path}"
