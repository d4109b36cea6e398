"""Bugs of the order inside a poll, M-125…M-129."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

from kclient.consumer.core import ConsumerCore
from kclient.consumer.poll import Poll, PollSteps
from kclient.consumer.rebalance import Rebalance
from kclient.consumer.tasks import Lifecycle
from kclient.positions.table import Positions
from kclient.types import TopicPartition
from tests.simulation.mutants import polling_scripts as scripts
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-125", "I-28", look=scripts.erring_member)
def errors_first(patch: Patch) -> None:
    """Raise stored errors before callbacks, rebalance steps and the automatic commit."""

    def begin(self: Poll, **more: Any) -> None:
        self._steps.polls = self  # type: ignore[attr-defined]
        begun(self, **more)

    async def run(self: PollSteps) -> None:
        if self._group is not None:
            self._group.membership.poll_started()
        self.polls._errors.raise_first()  # type: ignore[attr-defined]
        await before(self)

    begun = patch.put(Poll, "_begin", begin)
    before = patch.put(PollSteps, "run", run)


@mutant("M-126", "I-07", look=scripts.early_commit)
def positions_at_once(patch: Patch) -> None:
    """Look up the positions of new partitions as soon as they are assigned."""

    def defer_lookup(self: Positions, partitions: Iterable[TopicPartition]) -> None:
        return

    patch.put(Positions, "defer_lookup", defer_lookup)


@mutant("M-127", "I-28", look=scripts.connected_only)
def join_on_connect(patch: Patch) -> None:
    """Join the group with the first call that connects."""

    def build(self: ConsumerCore, *args: Any) -> None:
        built(self, *args)
        self.lifecycle.updater = self.subscription_updater  # type: ignore[attr-defined]

    async def start(self: Lifecycle) -> None:
        await before(self)
        self.updater.join_group()  # type: ignore[attr-defined]

    built = patch.put(ConsumerCore, "__init__", build)
    before = patch.put(Lifecycle, "start", start)


@mutant("M-128", "I-15", look=scripts.advised_commit)
def stale_error(patch: Patch) -> None:
    """Ask for a first position again as soon as the error about it is raised."""

    def resume_after_error(self: Positions, tp: TopicPartition) -> Any:
        before(self, tp)
        self.state(tp).lookup_deferred = False

    before = patch.put(Positions, "resume_after_error", resume_after_error)


@mutant("M-129", "I-28", look=scripts.slowly_erring_member)
def one_step_a_poll(patch: Patch) -> None:
    """Raise a stored error between the steps of a rebalance, so that each takes a poll, and a pause."""

    patch.put(Rebalance, "_needing_polls", lambda self: nullcontext())
