"""Refusals of any object are of bounded length, and say where and what to do all the same."""

from app.wire.findings import LONGEST, MOST_REFUSALS, Findings


def test_a_value_of_any_length_is_quoted_in_part() -> None:
    findings = Findings()
    findings.refuse("spec.queue", f'queue "{"q" * 100_000}" not found; name another queue')
    told = findings.message()
    assert len(told) == LONGEST + len(";")
    assert told.startswith('spec.queue: queue "qqqq')
    assert "characters]..." in told
    assert told.endswith('" not found; name another queue;')


def test_a_path_of_any_length_is_quoted_in_part() -> None:
    findings = Findings()
    findings.warn(f"metadata.annotations[{'a' * 100_000}]", "has no effect here")
    (told,) = findings.told()
    assert len(told) == LONGEST
    assert told.endswith("]: has no effect here")


def test_the_refusals_beyond_the_first_are_counted() -> None:
    findings = Findings()
    for number in range(1_000):
        findings.refuse(f"spec.tasks[{number}].name", "is missing")
    assert findings.message().count("is missing") == MOST_REFUSALS
    assert findings.message().endswith(f"; and {1_000 - MOST_REFUSALS} more;")
