"""Which controllers there are, what each follows, and how it is built."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from app.controllers import colocation
from app.controllers.cronjob import controller as cronjob
from app.controllers.garbage import GarbageCollector
from app.controllers.hypernode import controller as hypernode
from app.controllers.hypernode.discoverer import Discoverer
from app.controllers.job import controller as job
from app.controllers.job.slots import SlotSource
from app.controllers.jobflow import controller as jobflow
from app.controllers.jobflow import templates
from app.controllers.jobflow.owing import owed_by
from app.controllers.podgroup import controller as podgroup
from app.controllers.podgroup.confirmed import Confirmed
from app.controllers.podgroup.stranded import INDEXES as STRANDED_INDEXES
from app.controllers.podgroup.stranded import StrandedGroups
from app.controllers.podgroup.suspended import SuspendedJobs
from app.controllers.ports import Api, Clock, Events, Web
from app.controllers.queue import controller as queue
from app.controllers.runtime import Controller, Stores
from app.controllers.store import Index
from app.main.adapters.prober import PodProber
from app.settings.controllers import ControllersSettings
from app.wire.kinds import (
    JOB_FLOWS,
    JOBS,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from app.wire.unstructured import Key

Indexes = Mapping[Resource, Mapping[str, Index]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What controllers are built from."""

    stores: Stores
    api: Api
    events: Events
    slots: SlotSource
    clock: Clock
    web: Web
    settings: ControllersSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A name of ``--controllers`` and what runs under it.

    ``follows`` are the kinds it needs in the stores, and the indexes it finds them by.
    """

    follows: Indexes
    build: Callable[[Means], tuple[Controller, ...]]
    workers: Callable[[ControllersSettings], int]


_SEVERAL: Final = 5
"""Workers where there is no flag for it."""


def _podgroups(means: Means) -> tuple[Controller, ...]:
    options = podgroup.Options(
        schedulers=frozenset(means.settings.schedulers()),
        inherit=means.settings.inherit_owner_annotations,
    )
    confirmed = Confirmed(clock=means.clock)
    of_pods = podgroup.PodGrouping(
        means.stores,
        api=means.api,
        events=means.events,
        confirmed=confirmed,
        options=options,
    )
    of_workloads = podgroup.WorkloadGrouping(
        means.stores, api=means.api, confirmed=confirmed, options=options
    )
    of_suspended = SuspendedJobs(means.stores, api=means.api, confirmed=confirmed)
    of_stranded = StrandedGroups(
        means.stores, api=means.api, events=means.events, clock=means.clock
    )
    return of_pods, of_workloads, of_suspended, of_stranded


def _jobs(means: Means) -> tuple[Controller, ...]:
    settings = means.settings
    options = job.JobOptions(
        schedulers=settings.schedulers(), max_requeues=settings.max_requeue_num
    )
    return (
        job.JobController(
            means.stores,
            api=means.api,
            events=means.events,
            slots=means.slots,
            clock=means.clock,
            options=options,
        ),
    )


def _flows(means: Means) -> tuple[Controller, ...]:
    return (
        jobflow.JobFlowController(
            means.stores,
            api=means.api,
            events=means.events,
            prober=PodProber(),
            clock=means.clock,
        ),
    )


def _garbage(means: Means) -> tuple[Controller, ...]:
    owed = owed_by(means.stores.get(JOB_FLOWS))
    return (GarbageCollector(means.stores, api=means.api, clock=means.clock, owed=owed),)


def _cron_jobs(means: Means) -> tuple[Controller, ...]:
    wall = time.time  # noqa: TID251 - schedules are about the clock that people set
    return (
        cronjob.CronJobController(means.stores, api=means.api, events=means.events, clock=wall),
    )


def _hyper_nodes(means: Means) -> tuple[Controller, ...]:
    return (
        hypernode.HyperNodeController(means.stores, api=means.api, clock=means.clock),
        Discoverer(
            means.stores,
            api=means.api,
            events=means.events,
            web=means.web,
            clock=means.clock,
            config_map=discovery_conf(means.settings),
        ),
    )


def discovery_conf(settings: ControllersSettings) -> Key:
    """The ConfigMap that says which HyperNodes are discovered, in the Lease's namespace."""
    return Key(settings.leader_elect_resource_namespace, settings.discovery_config_map)


OFFERS: Final[Mapping[str, Offer]] = {
    "job-controller": Offer(
        follows=job.INDEXES, build=_jobs, workers=lambda settings: settings.worker_threads
    ),
    "pg-controller": Offer(
        follows={
            PODS: {**podgroup.INDEXES[PODS], **STRANDED_INDEXES[PODS]},
            POD_GROUPS: {},
            REPLICA_SETS: {},
            STATEFUL_SETS: {},
        },
        build=_podgroups,
        workers=lambda settings: settings.worker_threads_for_podgroup,
    ),
    "queue-controller": Offer(
        follows=queue.INDEXES,
        build=lambda means: (
            queue.QueueController(means.stores, api=means.api, events=means.events),
        ),
        workers=lambda settings: settings.worker_threads_for_queue,
    ),
    "gc-controller": Offer(
        follows={JOBS: {}},
        build=_garbage,
        workers=lambda settings: settings.worker_threads_for_gc,
    ),
    "jobflow-controller": Offer(follows=jobflow.INDEXES, build=_flows, workers=lambda _: _SEVERAL),
    "jobtemplate-controller": Offer(
        follows=templates.INDEXES,
        build=lambda means: (templates.JobTemplateController(means.stores, api=means.api),),
        workers=lambda _: 1,
    ),
    "cronjob-controller": Offer(
        follows=cronjob.INDEXES,
        build=_cron_jobs,
        workers=lambda settings: settings.worker_threads_for_cronjob,
    ),
    colocation.NAME: Offer(
        follows=colocation.INDEXES,
        build=lambda means: (colocation.ColocationController(means.stores, api=means.api),),
        workers=lambda _: _SEVERAL,
    ),
    hypernode.NAME: Offer(
        follows=hypernode.INDEXES, build=_hyper_nodes, workers=lambda _: _SEVERAL
    ),
}


def chosen(names: str) -> dict[str, Offer]:
    """The controllers of ``--controllers``: ``*``, names, ``-name``; ValueError: unknown ones."""
    asked = [name.strip() for name in names.split(",") if name.strip()]
    known = {"*", *OFFERS, *UNNEEDED}
    unknown = sorted({name.removeprefix("-") for name in asked} - known)
    if unknown:
        there = ", ".join(sorted(OFFERS))
        raise ValueError(f"--controllers: {', '.join(unknown)}: not among {there}")
    without = {name.removeprefix("-") for name in asked if name.startswith("-")}
    return {
        name: offer
        for name, offer in OFFERS.items()
        if name not in without and (name in asked or "*" in asked)
    }


UNNEEDED: Final = frozenset({"sharding-controller"})
"""Volcano's names for what there is nothing to do for here: one scheduler has all nodes."""


def indexes(offers: Mapping[str, Offer]) -> dict[Resource, dict[str, Index]]:
    """All kinds that ``offers`` follow, with all their indexes."""
    found: dict[Resource, dict[str, Index]] = {}
    for offer in offers.values():
        for resource, of_kind in offer.follows.items():
            found.setdefault(resource, {}).update(of_kind)
    return found
