"""How far a gang's members have come between their places and their nodes.

kube-scheduler brings members to Bind one by one. Their Bindings are sent together, and answered one
by one again; the watch shows some time later which members are on nodes. What the gang may count on
meanwhile is counted here, for members with a place that the watch does not show on a node.
"""

from collections import Counter
from dataclasses import dataclass, field

from app.cache.gangs.members import Answer, Member, MemberState, Stage
from app.cache.gangs.tally import bump
from app.model.parts import Part


@dataclass(slots=True, eq=False)
class Arrivals:
    """The members of one group that are on this way, counted as they go on or back."""

    at_bind: Counter[Part] = field(default_factory=Counter)
    """Members per part that have come to Bind and whose places are not void."""
    unanswered: int = 0
    """Members with Bindings under way of which nothing is known."""
    accepted: Counter[Part] = field(default_factory=Counter)
    """Members per part whose Bindings the API server took: bound, though the watch is late."""
    voided: int = 0
    """Members that may not use their places any more, unless they are bound already."""

    def count(self, member: Member, sign: int) -> None:
        """Have ``member`` count if it is on this way, or with -1 not any more, as it did before."""
        if member.kind is not MemberState.PLACED:
            return
        part, arrived = member.part, member.arrived
        bump(self.at_bind, part, sign * arrived)
        if member.stage is Stage.BINDING:
            self.unanswered += sign * (member.answer is Answer.OPEN)
            bump(self.accepted, part, sign * (member.answer is Answer.YES))
            self.voided += sign * (not arrived)
