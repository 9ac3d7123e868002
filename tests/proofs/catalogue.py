"""All pieces. One that comes near to ten minutes gets more shares."""

from __future__ import annotations

from tests.proofs.piece import Piece, faults, properties

_PLANNER = "tests/core/test_planner_properties.py"
_BEARABLE = "tests/core/test_bears_more.py"
_ENGINE = "tests/core/placement"
_DOMAINS = "tests/core/test_domain_oracle.py"
_AFFINITY = "tests/core/test_affinity_oracle.py"
_VICTIMS = "tests/core/victims"
_LOOPS = "tests/core/test_loops.py"
_DEVICES = "tests/cache/test_device_crashes.py"
_CACHE_MACHINE = "tests/cache/test_state_machine.py"
_BARRIER = "tests/service/calls/test_barrier_machine.py"
_EQUAL_PODS = "tests/service/cycle/test_equal_pods.py"
_INTERLEAVINGS = "tests/controllers/job/test_interleavings.py"

PIECES: tuple[Piece, ...] = (
    *properties("planner", _PLANNER, shares=40),
    *properties("engine", _ENGINE, shares=10),
    *properties("bearable", _BEARABLE, shares=10),
    *properties("victims", _VICTIMS, shares=10),
    *properties("domains", _DOMAINS, shares=10),
    *properties("affinity", _AFFINITY, shares=20),
    *properties("loops", _LOOPS, shares=20),
    *properties(
        "core",
        "tests/core",
        without=(_PLANNER, _BEARABLE, _ENGINE, _VICTIMS, _DOMAINS, _AFFINITY, _LOOPS),
        shares=10,
    ),
    *properties("cache-machine", _CACHE_MACHINE, shares=20),
    *properties("devices", _DEVICES, shares=5),
    *properties("cache", "tests/cache", without=(_CACHE_MACHINE, _DEVICES), shares=2),
    *properties("barrier", _BARRIER, shares=4),
    *properties("equal-pods", _EQUAL_PODS, shares=5),
    *properties("service", "tests/service", without=(_BARRIER, _EQUAL_PODS), shares=5),
    *properties("interleavings", _INTERLEAVINGS, shares=4),
    *properties("controllers", "tests/controllers", without=(_INTERLEAVINGS,), shares=4),
    *properties("bad-requests", "tests/api", shares=5),
    *properties(
        "edges",
        *("tests/cli", "tests/front", "tests/jobplugins", "tests/kit", "tests/kube"),
        *("tests/webhooks", "tests/wire"),
        shares=10,
    ),
    *faults("competition", "tests/e2e/test_competition.py", rounds=20, shares=5),
    *faults("crowd", "tests/e2e/test_crowd.py", rounds=20, shares=5),
    *faults("kill", "tests/e2e/test_kill.py", rounds=20, shares=5),
    *faults("domain-kills", "tests/e2e/test_domain_kills.py", rounds=20, shares=4),
    *faults("fresh-start", "tests/e2e/test_fresh_start.py", rounds=20, shares=4),
    *faults("mixed-faults", "tests/e2e/test_mixed_faults.py", rounds=20, shares=4),
    *faults("mixed-arrivals", "tests/e2e/test_mixed_arrivals.py", rounds=60, shares=2),
    *faults("taking-room", "tests/e2e/test_taking_room.py", rounds=20),
    *faults("taking-room-kills", "tests/e2e/test_taking_room_kills.py", rounds=20, shares=4),
    *faults("simulate", "tests/scenarios/test_simulate.py", rounds=20),
    Piece(
        "simulate-sandbox",
        ("tests/scenarios/test_simulate.py",),
        marked="sandbox",
        variables={"PUMICE_ROUNDS": "20"},
    ),
    Piece(
        "replay",
        ("tests/service/test_ring.py", "tests/wire/test_redacted.py"),
        marked="not hypothesis",
        variables={"PUMICE_ROUNDS": "20"},
    ),
    Piece("page", ("tests/ui",), marked="not real", variables={"PUMICE_ROUNDS": "20"}),
    Piece(
        "moving-work",
        ("tests/sandbox/story",),
        marked="not real and not hypothesis",
        variables={"PUMICE_ROUNDS": "20"},
    ),
    *faults("outages", "tests/e2e/test_outages.py", rounds=20),
    *faults("waiting", "tests/e2e/test_waiting.py", rounds=20),
    *faults("many-jobs", "tests/controllers/job/test_many_on_the_real_one.py", rounds=20),
    *faults("flows", "tests/controllers/jobflow/test_on_the_real_one.py", rounds=10, shares=2),
    *faults("evictions", "tests/scenarios/jobs/test_job_evictions.py", rounds=10, shares=4),
)
