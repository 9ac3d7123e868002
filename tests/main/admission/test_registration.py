"""Keeping the API server told of the webhooks."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

from app.controllers.ports import Failure
from app.main.admission import registration as webhooks_registration
from app.main.admission.registration import Registrar, registration_of
from app.settings.webhooks import WebhookSettings
from app.webhooks.admission import WEBHOOKS
from app.webhooks.configurations import MUTATING, VALIDATING
from app.webhooks.resource_groups import ResourceGroup
from app.wire.unstructured import Key
from tests.controllers.fake_api import FakeApi

NAME = Key("", "pumice-webhooks")
GROUPS = (ResourceGroup(name="a"),)


def settings(**given: Any) -> WebhookSettings:
    return WebhookSettings(public_url="https://host:1", **given)


def registrar(api: FakeApi, ready: asyncio.Event, **given: Any) -> Registrar:
    return Registrar(api, registration_of(settings(**given), WEBHOOKS, None), ready)


def trusted(api: FakeApi) -> set[bytes]:
    """Whom the API server was told to trust, in both configurations."""
    found = [api.find(kind, NAME) for kind in (MUTATING, VALIDATING)]
    return {
        base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
        for each in found
        if each is not None
        for webhook in each["webhooks"]
    }


async def test_nothing_is_told_before_requests_can_be_answered() -> None:
    api, ready = FakeApi(lambda: 0.0), asyncio.Event()
    telling = asyncio.create_task(registrar(api, ready).register(b"ca"))
    await asyncio.sleep(10)
    assert trusted(api) == set()
    ready.set()
    await telling
    assert trusted(api) == {b"ca"}


async def test_what_somebody_takes_away_comes_back_and_a_new_authority_is_told(
    tmp_path: Path,
) -> None:
    api, ready = FakeApi(lambda: 0.0), asyncio.Event()
    ready.set()
    authority = tmp_path / "ca.crt"
    authority.write_bytes(b"one")
    following = asyncio.create_task(registrar(api, ready).follow_file(authority))
    await asyncio.sleep(1)
    assert trusted(api) == {b"one"}
    await api.delete(VALIDATING, NAME)
    await api.delete(MUTATING, NAME)
    await asyncio.sleep(webhooks_registration.AGAIN_S + 1)
    assert trusted(api) == {b"one"}
    authority.write_bytes(b"another")
    await asyncio.sleep(3)
    assert trusted(api) == {b"another"}
    authority.unlink()
    await asyncio.sleep(5)
    assert trusted(api) == {b"another"}
    assert not following.done()
    authority.write_bytes(b"third")
    await asyncio.sleep(3)
    assert trusted(api) == {b"third"}
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_failure_is_tried_again_and_without_a_file_nobody_is_named() -> None:
    api, ready = FakeApi(lambda: 0.0), asyncio.Event()
    ready.set()
    api.fail(Failure.PASSING, lambda request: request.verb == "patch", times=3)
    following = asyncio.create_task(registrar(api, ready).follow_file(None))
    await asyncio.sleep(10)
    assert trusted(api) == {b""}
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_who_is_told_not_to_register_does_not() -> None:
    api, ready = FakeApi(lambda: 0.0), asyncio.Event()
    ready.set()
    await registrar(api, ready, register_webhooks=False).register(b"ca")
    assert api.requests == []


def registered(groups: tuple[ResourceGroup, ...] | None, **given: Any) -> set[str]:
    registration = registration_of(settings(**given), WEBHOOKS, groups)
    assert registration is not None
    return {webhook.path for webhook in registration.webhooks}


def test_pods_are_asked_about_when_something_may_change_in_them() -> None:
    everything = {webhook.path for webhook in WEBHOOKS}
    assert registered(None) == everything - {"/pods/mutate"}
    assert registered(None, gate_pods=True) == everything
    assert registered(None, feature_gates="SchedulingGatesQueueAdmission=true") == everything
    assert registered(None, feature_gates="SchedulingGatesQueueAdmission=false") != everything
    assert registered(GROUPS) == registered(()) == everything


def test_the_settings_are_in_it() -> None:
    registration = registration_of(
        settings(
            failure_policy="Fail",
            webhook_namespace="n",
            webhook_service_name="s",
            webhook_configuration_name="c",
            scheduler_name="b,a",
        ),
        WEBHOOKS,
        None,
    )
    assert registration is not None
    assert (registration.place.namespace, registration.place.service) == ("n", "s")
    assert (registration.name, registration.failure_policy) == ("c", "Fail")
    assert registration.schedulers == ("b", "a")
    assert not registration.any_pod
