"""All pieces. One that comes near to ten minutes gets more shares."""

from __future__ import annotations

from tests.proofs.piece import Piece, faults, properties

PIECES: tuple[Piece, ...] = (
    # The pure core
    *properties("planner", "tests/core/test_planner_properties.py", shares=20),
    *properties("engine", "tests/core/placement", shares=10),
    *properties("bearable", "tests/core/test_bears_more.py", shares=5),
    *properties("work-conservation", "tests/core/test_work_conservation.py", shares=5),
    *properties(
        "core",
        "tests/core/actions",
        "tests/core/gangs",
        "tests/core/plugins",
        "tests/core/shares",
        "tests/core/test_confirm.py",
        "tests/core/test_figures.py",
        "tests/core/test_ledger.py",
        "tests/core/test_over_limit.py",
        "tests/core/test_parts.py",
        "tests/core/test_queue_limits.py",
        shares=5,
    ),
    # What is known of the cluster, and what is made of it
    *properties("cache-machine", "tests/cache/test_state_machine.py", shares=10),
    *properties(
        "cache",
        "tests/cache/gangs",
        "tests/cache/neighbours",
        "tests/cache/reserved",
        "tests/cache/snapshots",
    ),
    *properties("barrier", "tests/service/calls/test_barrier_machine.py", shares=5),
    *properties("equal-pods", "tests/service/cycle/test_equal_pods.py", shares=5),
    *properties(
        "service",
        "tests/service/calls/test_front_reservations_crossing.py",
        "tests/service/calls/test_preemption.py",
        "tests/service/cycle/test_allowed_victims.py",
        "tests/service/cycle/test_planning.py",
        "tests/service/test_configuration.py",
        "tests/service/test_shortage_properties.py",
        shares=5,
    ),
    # Controllers, webhooks, and the edges
    *properties("interleavings", "tests/controllers/job/test_interleavings.py", shares=10),
    *properties(
        "controllers",
        "tests/controllers/cronjob",
        "tests/controllers/hypernode",
        "tests/controllers/jobflow",
        "tests/controllers/jobplugins",
        "tests/controllers/podgroup",
        "tests/controllers/queue",
        "tests/controllers/test_intake.py",
        "tests/controllers/test_store.py",
        shares=5,
    ),
    *properties("bad-requests", "tests/api", shares=5),
    *properties(
        "edges",
        "tests/front",
        "tests/jobplugins",
        "tests/kit",
        "tests/kube",
        "tests/webhooks",
        "tests/wire",
        shares=2,
    ),
    # Faults on the real control plane
    *faults("competition", "tests/e2e/test_competition.py", rounds=20, shares=5),
    *faults("crowd", "tests/e2e/test_crowd.py", rounds=20, shares=5),
    *faults("kill", "tests/e2e/test_kill.py", rounds=20, shares=5),
    *faults("fresh-start", "tests/e2e/test_fresh_start.py", rounds=20, shares=4),
    *faults("mixed-faults", "tests/e2e/test_mixed_faults.py", rounds=20, shares=4),
    *faults("outages", "tests/e2e/test_outages.py", rounds=20),
    *faults("waiting", "tests/e2e/test_waiting.py", rounds=20),
    *faults("many-jobs", "tests/controllers/job/test_many_on_the_real_one.py", rounds=20),
    *faults("flows", "tests/controllers/jobflow/test_on_the_real_one.py", rounds=10, shares=2),
    *faults("evictions", "tests/scenarios/jobs/test_job_evictions.py", rounds=20, shares=2),
)
