"""When a token is asked for again."""

import pytest
from kubernetes.config import ConfigException

from app.kube.errors import ConfigError
from app.kube.login import REST_S, Given, Login


class Source:
    def __init__(self) -> None:
        self.said = "one"
        self.asked = 0
        self.now = 0.0
        self.error: Exception | None = None

    def clock(self) -> float:
        return self.now

    def ask(self) -> Given:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return Given(token=self.said, keep_s=60.0)

    def login(self) -> Login:
        return Login(self.ask, first=Given(token="one", keep_s=60.0), clock=self.clock)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_token_is_kept_as_long_as_it_may_be() -> None:
    source = Source()
    login = source.login()
    source.said = "two"
    source.now = 59.0
    assert login.headers() == bearer("one")
    source.now = 60.0
    assert login.headers() == bearer("two")
    assert source.asked == 1


def test_a_refused_token_is_replaced_at_once() -> None:
    source = Source()
    login = source.login()
    source.said = "two"
    login.refused(bearer("one"))
    assert login.headers() == bearer("two")


def test_a_token_that_was_replaced_since_may_be_refused() -> None:
    source = Source()
    login = source.login()
    source.said = "two"
    login.refused(bearer("one"))
    login.headers()
    source.said = "three"
    login.refused(bearer("one"))
    assert login.headers() == bearer("two")


def test_while_there_is_no_other_than_the_refused_it_is_asked_for_now_and_then() -> None:
    source = Source()
    login = source.login()
    for _ in range(5):
        login.refused(bearer("one"))
        assert login.headers() == bearer("one")
    assert source.asked == 1
    source.said = "two"
    source.now += REST_S
    assert login.headers() == bearer("two")


@pytest.mark.parametrize("error", [ConfigException("gone"), OSError("gone"), ValueError("gone")])
def test_a_token_that_cannot_be_had_is_a_config_error(error: Exception) -> None:
    source = Source()
    login = source.login()
    login.refused(bearer("one"))
    source.error = error
    with pytest.raises(ConfigError, match="the credentials cannot be renewed: gone"):
        login.headers()
    source.error, source.said = None, "two"
    assert login.headers() == bearer("two")
