"""A farm's history answers whatever it is sent, and a run takes nothing for an answer that is none."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.farm import client
from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.history.exchange import pack_schedules
from halide_autotune.autotune_loop.history.farm_history import FarmHistory, ServedHistory
from halide_autotune.autotune_loop.history.history import History, NestLimits
from halide_autotune.targets.errors import HistoryError
from tests.known_schedules import INLINED, PIPELINE, PLACE, TARGET, known

LIMITS = NestLimits(5, 10, 1)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(asked=st.fixed_dictionaries({"pipeline": JUNK, "place": JUNK, "count": JUNK}), packed=JUNK, limits=JUNK)
@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_question_gets_an_answer_or_a_sentence(
    asked: dict[str, Any], packed: Any, limits: Any, tmp_path: Path
) -> None:
    served = ServedHistory(History(tmp_path / "history.sqlite3"), lambda line: None)
    for answer in (served.best(**asked), served.add(packed), served.nests(asked["place"], "2 threads", limits)):
        told = asyncio.run(answer)
        assert [*told] in (["answer"], ["refused"])


def test_what_was_packed_is_kept_and_what_was_not_is_refused(tmp_path: Path) -> None:
    history, lines = History(tmp_path / "history.sqlite3"), list[str]()
    served = ServedHistory(history, lines.append)
    assert asyncio.run(served.add(pack_schedules([known(1.0, INLINED)], {}))) == {"answer": 1}
    damaged = pack_schedules([known(2.0, "rubbish")], {})
    assert "its schedule is damaged" in str(asyncio.run(served.add(damaged))["refused"])
    assert len(history.schedules()) == 1 and len(lines) == 1


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, answer: object) -> Iterator[FarmHistory]:
    """A farm whose history answers that, whatever it is asked."""

    @contextmanager
    def farm(address: FarmAddress) -> Iterator[object]:
        asked = SimpleNamespace(farm_history_best=None, farm_history_nests=None, farm_history_add=None)
        yield SimpleNamespace(scheduler=asked, sync=lambda question, **given: answer)

    monkeypatch.setattr(client, "farm_client", farm)
    yield FarmHistory(FarmAddress("tls://nowhere:1", None))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "The farm's history: NoneType"),
        ({"refused": "It is damaged."}, "The farm's history: It is damaged."),
        ({"answer": b"rubbish"}, "not an exported history|something else than loop nests"),
        ({"answer": json.dumps([[[base64.b64encode(b"nest").decode(), -1.0]]]).encode()}, "a time of|exported history"),
        ({"answer": b"[[1]]"}, "something else than loop nests|exported history"),
    ],
)
def test_a_wrong_answer_is_one_error(answer: object, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(monkeypatch, answer) as history:
        for ask in (lambda: history.best(PIPELINE, PLACE, 2), lambda: history.nests(TARGET, "4 threads", LIMITS)):
            with pytest.raises(HistoryError, match=said):
                ask()


def test_a_farm_without_a_history_knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Mapping[str, object] = {"answer": None}
    with answering(monkeypatch, nothing) as history:
        assert history.best(PIPELINE, PLACE, 2) == [] and history.nests(TARGET, "4 threads", LIMITS) == []
        assert history.add([known(1.0, INLINED)]) == 0
