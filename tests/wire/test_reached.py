"""What a gang has reached, as an annotation."""

import pytest

from app.model.reached import REACHED
from app.wire import reached

NUMBERS = {"members": 4, "task/ps": 1, "task/worker": 3}


def test_it_is_read_as_it_was_written() -> None:
    annotations = reached.annotation(NUMBERS, uid="one")["metadata"]["annotations"]
    assert reached.read(annotations, uid="one") == NUMBERS


def test_on_another_pod_group_it_says_nothing() -> None:
    annotations = reached.annotation(NUMBERS, uid="one")["metadata"]["annotations"]
    assert reached.read(annotations, uid="another") == {}


def test_without_numbers_it_goes() -> None:
    assert reached.annotation({}, uid="one") == {"metadata": {"annotations": {REACHED: None}}}


@pytest.mark.parametrize(
    "text", ["", "4", "[]", "{", '{"members":4}', '{"uid":"one","members":[]}'], ids=repr
)
def test_what_cannot_be_read_says_nothing(text: str) -> None:
    assert reached.read({REACHED: text}, uid="one") == {}


def test_numbers_below_one_say_nothing() -> None:
    text = '{"uid":"one","members":-1,"task/a":0,"task/b":2,"task/c":"x"}'
    assert reached.read({REACHED: text}, uid="one") == {"task/b": 2}
