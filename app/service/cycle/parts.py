"""The parts of planning, wired once by the composition root."""

from dataclasses import dataclass

from app.service.cycle.allowed_victims import AllowedVictims
from app.service.cycle.cycle_log import CycleLog
from app.service.cycle.eta.etas import Etas
from app.service.cycle.evictions import Evictions
from app.service.cycle.expiry import Expiry
from app.service.cycle.last_plan import LastPlan
from app.service.cycle.leadership import Leadership
from app.service.cycle.loop import CycleLoop
from app.service.cycle.on_demand import OnDemand
from app.service.cycle.pace import Pace
from app.service.cycle.planning_cycle import PlanningCycle
from app.service.cycle.publishing import Publisher
from app.service.cycle.queries import Queries
from app.service.cycle.simulations import Simulations
from app.service.cycle.vetoes import Vetoes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanningParts:
    """Each is for those that need it; together they plan."""

    loop: CycleLoop
    cycle: PlanningCycle
    on_demand: OnDemand
    publisher: Publisher
    queries: Queries
    simulations: Simulations
    etas: Etas
    last_plan: LastPlan
    leadership: Leadership
    pace: Pace
    expiry: Expiry
    evictions: Evictions
    vetoes: Vetoes
    allowed_victims: AllowedVictims
    log: CycleLog
