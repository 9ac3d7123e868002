"""Every metric of the process, on one registry of its own.

Labels are bounded: kinds, verbs, status codes and typed reasons, never names of objects. A metric
is a module-level constant, so that what is measured can be read here in one place; code that
observes one on a hot path keeps the labelled child.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

_MILLISECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

KUBE_REQUESTS = Counter(
    "pumice_kube_requests",
    "Requests to the API server by verb and status code (0: no answer).",
    ("verb", "code"),
    registry=REGISTRY,
)
KUBE_REQUEST_SECONDS = Histogram(
    "pumice_kube_request_seconds",
    "Time from sending a request to its whole answer.",
    ("verb",),
    buckets=_MILLISECONDS,
    registry=REGISTRY,
)
KUBE_LIMITER_SECONDS = Counter(
    "pumice_kube_limiter_wait_seconds",
    "Time that requests waited for the client-side rate limit.",
    registry=REGISTRY,
)

INFORMER_EVENTS = Counter(
    "pumice_informer_events",
    "Lines of the watch by kind and type.",
    ("kind", "type"),
    registry=REGISTRY,
)
INFORMER_MALFORMED = Counter(
    "pumice_informer_malformed",
    "Objects that could not be decoded.",
    ("kind",),
    registry=REGISTRY,
)
INFORMER_LISTS = Counter(
    "pumice_informer_lists",
    "Complete listings, the first one included.",
    ("kind",),
    registry=REGISTRY,
)
INFORMER_RESTARTS = Counter(
    "pumice_informer_restarts",
    "Times that a list or a watch ended in an error and was begun again, by cause.",
    ("kind", "cause"),
    registry=REGISTRY,
)
INFORMER_SYNCED = Gauge(
    "pumice_informer_synced",
    "1 once the kind was listed completely.",
    ("kind",),
    registry=REGISTRY,
)
INFORMER_LAG_SECONDS = Gauge(
    "pumice_informer_lag_seconds",
    "Time since the API server was last heard for this kind (page, event or bookmark).",
    ("kind",),
    registry=REGISTRY,
)

FRONT_STARTS = Counter(
    "pumice_front_starts",
    "Times that the process that answers Filter was started.",
    registry=REGISTRY,
)

FRONT_ANSWERS = Counter(
    "pumice_front_answers",
    "Filter calls that this process answered, which the others count as well.",
    registry=REGISTRY,
)

MAILBOX_WAKEUPS = Counter(
    "pumice_mailbox_wakeups",
    "Times that the event loop was woken to take what the informers brought.",
    registry=REGISTRY,
)
MAILBOX_DELAY_SECONDS = Histogram(
    "pumice_mailbox_delay_seconds",
    "Time from an informer's delivery to its hand-over in the event loop (oldest of a wake-up).",
    buckets=_MILLISECONDS,
    registry=REGISTRY,
)

LEADER = Gauge(
    "pumice_leader",
    "1 while this process holds the Lease.",
    ("lease",),
    registry=REGISTRY,
)

CONFIGURATION_RELOADS = Counter(
    "pumice_configuration_reloads",
    "Scheduler configurations read, by what became of them.",
    ("outcome",),
    registry=REGISTRY,
)
CALLS = Histogram(
    "pumice_extender_call_seconds",
    "Time in the handler of a call of kube-scheduler; Bind includes the hold at the barrier.",
    ("verb",),
    buckets=(0.0001, 0.0002, 0.0005, *_MILLISECONDS[1:], 20.0, 60.0),
    registry=REGISTRY,
)
ANSWERS = Counter(
    "pumice_extender_answers",
    "Answers to kube-scheduler by verb and kind.",
    ("verb", "answer"),
    registry=REGISTRY,
)
CYCLE_SECONDS = Histogram(
    "pumice_cycle_seconds",
    "Time of a planning cycle, turns given to the event loop included.",
    buckets=_MILLISECONDS,
    registry=REGISTRY,
)
CYCLE_FAILURES = Counter(
    "pumice_cycle_failures",
    "Planning cycles that ended in an unexpected error.",
    registry=REGISTRY,
)
PLANNING_FAULTS = Counter(
    "pumice_planning_faults",
    "Groups that planning failed at by an unexpected error, each time that one was left out.",
    registry=REGISTRY,
)
UPKEEP_FAULTS = Counter(
    "pumice_upkeep_faults",
    "Cycles that did without an upkeep that failed by an unexpected error, by upkeep.",
    ("upkeep",),
    registry=REGISTRY,
)
PLUGIN_FAULTS = Counter(
    "pumice_plugin_faults",
    "Plans in which a plugin had no say as an unexpected error kept it from opening, by plugin.",
    ("plugin",),
    registry=REGISTRY,
)
GROUPS_REFUSED = Gauge(
    "pumice_groups_refused",
    "Groups without all their places after the last cycle, by cause.",
    ("cause",),
    registry=REGISTRY,
)
GROUP_WAIT_SECONDS = Histogram(
    "pumice_group_wait_seconds",
    "Time from the creation of a group until it runs for the first time.",
    buckets=(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400, 43_200, 86_400, 604_800),
    registry=REGISTRY,
)
GANGS_RELEASED = Counter(
    "pumice_gangs_released",
    "Reservations of gangs given back before they were used, by why.",
    ("why",),
    registry=REGISTRY,
)
WRITES = Counter(
    "pumice_writes",
    "Effects of a plan carried out on the API server, by kind and outcome.",
    ("kind", "outcome"),
    registry=REGISTRY,
)
LEDGER_DRIFT = Gauge(
    "pumice_ledger_drift",
    "Differences between the ledger and the API server at the last comparison.",
    registry=REGISTRY,
)
RECONCILE_FAILURES = Counter(
    "pumice_reconcile_failures",
    "Times that a controller gave a key up for now, by controller.",
    ("controller",),
    registry=REGISTRY,
)

LOADS_KNOWN = Gauge(
    "pumice_node_loads_known",
    "Nodes whose load is known, for the plugins usage and rescheduling.",
    registry=REGISTRY,
)
LOAD_FAILURES = Counter(
    "pumice_node_load_failures",
    "Times that loads of nodes could not be read.",
    registry=REGISTRY,
)
HTTP_EXTENDER_CALLS = Counter(
    "pumice_http_extender_calls",
    "What the HTTP extender was asked, by verb and outcome: answered, failed, ignored or dropped.",
    ("verb", "outcome"),
    registry=REGISTRY,
)
HTTP_EXTENDER_SECONDS = Histogram(
    "pumice_http_extender_call_seconds",
    "Time of a call of the HTTP extender.",
    ("verb",),
    buckets=_MILLISECONDS,
    registry=REGISTRY,
)
DISCOVERY_SUCCESS = Gauge(
    "pumice_discovery_success_timestamp_seconds",
    "When a source of HyperNodes told the topology last, and that was brought about.",
    ("source",),
    registry=REGISTRY,
)
DISCOVERY_FAILURES = Counter(
    "pumice_discovery_failures",
    "Times that a source of HyperNodes could not be asked, or told what cannot be meant.",
    ("source",),
    registry=REGISTRY,
)

EVICTIONS = Counter(
    "pumice_evictions",
    "Pods evicted, by action and by the plugin whose rule let them go.",
    ("action", "rule"),
    registry=REGISTRY,
)
EVICTION_PLANS = Counter(
    "pumice_eviction_plans",
    "Decisions to evict, by action and by what became of them so far.",
    ("action", "outcome"),
    registry=REGISTRY,
)
EVICTIONS_WASTED = Counter(
    "pumice_evictions_wasted",
    "Pods evicted for a group that did not get the room, by why.",
    ("why",),
    registry=REGISTRY,
)
EVICTIONS_GUARDED = Counter(
    "pumice_evictions_guarded",
    "Decisions to evict that were dropped, as the same jobs lose pods again and again.",
    registry=REGISTRY,
)

AUDIT_WRITTEN = Counter(
    "pumice_audit_decisions",
    "Decisions that were written to the audit trail.",
    registry=REGISTRY,
)
AUDIT_DROPPED = Counter(
    "pumice_audit_decisions_dropped",
    "Decisions that were not kept, as too many waited to be written.",
    registry=REGISTRY,
)
AUDIT_BYTES = Gauge(
    "pumice_audit_bytes",
    "Room that the files of the audit trail take.",
    registry=REGISTRY,
)
AUDIT_KEPT = Gauge(
    "pumice_audit_kept",
    "1 while decisions are kept, 0 while their files cannot be written.",
    registry=REGISTRY,
)
