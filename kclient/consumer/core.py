"""ConsumerCore: builds the parts of one consumer, and passes to each part the others that it uses.

    subscription      topics, pattern or partitions          subscription_updater   metadata and group follow it
    cluster           brokers, leaders, requests             lifecycle, tasks       first connection, tasks
    positions         where each partition is read next      position_updater       committed → reset → validate
    fetcher, buffer   Fetch requests; fetched bytes          assigned               positions, buffered and delivered
    group             membership, commits, rebalances                               records, changed together
    callbacks         callbacks, run in the user's calls     polls                  the steps of poll()

Everything here runs on one event loop. AsyncConsumer calls it directly, Consumer from another thread. Only the calls of
AsyncConsumer, `close.py` and `explain.py` see the whole core.
"""

from __future__ import annotations

from typing import Final

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.callbacks import CallbackQueue, CallUser, RunningHandlers
from kclient.consumer.commits import CommitManager
from kclient.consumer.delivered import UndecodedRecords
from kclient.consumer.group import GroupConsumer, GroupProtocol, Leaving
from kclient.consumer.interceptors import Interceptors
from kclient.consumer.listener_invoker import RebalanceListenerInvoker
from kclient.consumer.membership import CurrentMembership
from kclient.consumer.metrics import ConsumerMetrics
from kclient.consumer.missing_topics import MissingTopics
from kclient.consumer.offset_lookup import ConsumerLag, OffsetLookup
from kclient.consumer.poll import BackgroundErrors, Decode, Poll, PollSteps, RecordCollector
from kclient.consumer.read_ahead import ReadAhead
from kclient.consumer.rebalance import Rebalance
from kclient.consumer.subscription import SubscriptionState
from kclient.consumer.subscription_updater import SubscriptionUpdater
from kclient.consumer.tasks import BackgroundTasks, CallTimeouts, Lifecycle
from kclient.errors import BrokerError
from kclient.fetch.buffer import FetchBuffer
from kclient.fetch.delivery import RecordDelivery
from kclient.fetch.fetcher import Fetcher
from kclient.group.coordinator import Coordinator
from kclient.group.offset_commit import OffsetCommitter
from kclient.group.offset_fetch import CommittedOffsets
from kclient.network.cluster import Cluster
from kclient.positions.table import Positions
from kclient.positions.updater import PositionUpdater
from kclient.protocol.errors import INVALID_GROUP_ID
from kclient.records.decoder import decoder_in_use
from kclient.runtime import Runtime


class ConsumerCore:
    """The parts of one consumer. `call_user` runs the user's functions, `decode` decodes records."""

    def __init__(self, config: Config, runtime: Runtime, call_user: CallUser, decode: Decode) -> None:
        decoder_in_use()  # raises ConfigError here rather than from the first poll with records
        self.config = config
        self.runtime = runtime
        self.call_user = call_user
        self.interceptors: Final = Interceptors(config.interceptors, call_user, runtime.now)
        self.changed: Final = ChangeSignal()  # whatever a waiting poll() must look at
        changed = self.changed
        self.timeouts: Final = CallTimeouts(changed)
        self.tasks: Final = BackgroundTasks(changed)
        self.rebalance_steps: Final = CallbackQueue(changed)
        self.callbacks: Final = CallbackQueue(changed)
        self.handlers: RunningHandlers | None = None
        self.subscription: Final = SubscriptionState()
        self.positions: Final = Positions()
        self.buffer: Final = FetchBuffer()
        self.metrics: Final = ConsumerMetrics(config, self.positions, self.buffer)
        self.cluster: Final = Cluster(config, runtime, self.metrics.network)
        self._build_reading()
        self.missing_topics: Final = MissingTopics(
            config, runtime, self.cluster, self.subscription, self.positions, self.tasks, changed
        )
        self.subscription_updater: Final = SubscriptionUpdater(
            config,
            self.cluster,
            self.subscription,
            self.assigned,
            self.group_or_none,
            self.missing_topics,
            changed,
        )
        self._build_calls(decode)
        for signal in (self.positions.changed, self.buffer.changed, self.cluster.metadata.changed):
            signal.chain(changed)

    def _build_reading(self) -> None:
        """Build positions, fetching and the group, in which they read committed offsets."""
        config, runtime, cluster, positions = self.config, self.runtime, self.cluster, self.positions
        self.fetcher: Fetcher = Fetcher(cluster, positions, self.buffer, config, runtime, self.metrics.fetch)
        coordinator = committed = None
        membership = CurrentMembership(config, self.subscription)
        if config.group_id is not None:
            coordinator = Coordinator(cluster, config.group_id, config, runtime)
            committed = CommittedOffsets(coordinator, config, runtime, membership.fetch_identity)
        self.position_updater: PositionUpdater = PositionUpdater(
            cluster,
            positions,
            config,
            runtime,
            committed.fetch if committed is not None else None,
            self.metrics.position_jumped,
        )
        self.assigned: AssignedPartitions = AssignedPartitions(
            positions, self.buffer, self.position_updater, self.metrics
        )
        self.lifecycle: Lifecycle = Lifecycle(
            cluster, self.subscription, self.timeouts, self.tasks, self.position_updater, self.fetcher
        )
        self.group_or_none: GroupConsumer | None = None
        if coordinator is not None and committed is not None:
            self.group_or_none = self._build_group(coordinator, committed, membership)

    def _build_group(
        self, coordinator: Coordinator, committed: CommittedOffsets, membership: CurrentMembership
    ) -> GroupConsumer:
        config, runtime, metrics, assigned = self.config, self.runtime, self.metrics, self.assigned
        committer = OffsetCommitter(
            coordinator,
            config,
            runtime,
            membership.commit_identity,
            membership.commit_refused,
            metrics.coordinator,
            self.positions.topic_id_for_commit,
            self.positions.__contains__,
        )
        commits = CommitManager(
            committer,
            config,
            runtime,
            self.tasks,
            self.callbacks,
            self.call_user,
            self.interceptors,
            metrics.own,
        )
        invoker = RebalanceListenerInvoker(
            self.subscription, assigned, membership, self.rebalance_steps, self.call_user, metrics
        )
        rebalance = Rebalance(
            config,
            self.cluster,
            self.subscription,
            assigned,
            membership,
            commits,
            invoker,
            self.rebalance_steps,
            metrics.own,
        )
        leaving = Leaving(runtime, self.tasks, self.subscription, membership, commits, rebalance)
        protocol = GroupProtocol(config, runtime, self.cluster, coordinator, rebalance, metrics.coordinator)
        return GroupConsumer(
            coordinator,
            committed,
            protocol,
            membership,
            commits,
            rebalance,
            leaving,
            assigned,
            self.tasks,
            self.changed,
        )

    def _build_calls(self, decode: Decode) -> None:
        """Build what the public calls use: poll(), the lookups, lag."""
        config, runtime, assigned, group = self.config, self.runtime, self.assigned, self.group_or_none
        lost_records = self.metrics.own.records_skipped
        self.undecoded: UndecodedRecords = UndecodedRecords(
            config.on_decode_error, lambda count: lost_records(count, "decode")
        )
        self.errors: BackgroundErrors = BackgroundErrors(
            group,
            (
                self.cluster.metadata.take_error,
                self.position_updater.take_error,
                self.fetcher.take_error,
                self.missing_topics.take_error,
                self.tasks.take_error,
            ),
        )
        steps = PollSteps(
            config,
            runtime,
            self.callbacks,
            self.rebalance_steps,
            self.subscription_updater,
            assigned,
            self.missing_topics,
            group,
        )
        delivery = RecordDelivery(self.positions, self.buffer, config, self.metrics.fetch)
        collector = RecordCollector(
            config, runtime, delivery, decode, self.undecoded, self.interceptors, assigned
        )
        self.read_ahead: ReadAhead = ReadAhead(
            config,
            runtime,
            delivery,
            assigned,
            steps.due_times,
            self.changed,
            self.buffer,
            self.metrics.calls,
        )
        self.polls: Poll = Poll(
            runtime,
            self.changed,
            self.timeouts,
            self.lifecycle,
            self.subscription,
            assigned,
            steps,
            self.errors,
            collector,
            self.read_ahead,
            self.metrics.calls,
        )
        self.lag: ConsumerLag = ConsumerLag(
            config, runtime, self.cluster, self.lifecycle, assigned, self.tasks
        )
        self.offset_lookup: OffsetLookup = OffsetLookup(
            config, runtime, self.cluster, self.timeouts, self.lifecycle, self.tasks, self.lag
        )

    @property
    def group(self) -> GroupConsumer:
        """Return the group. Raise the broker's own INVALID_GROUP_ID for a consumer without one."""
        if self.group_or_none is None:
            raise BrokerError(
                "This call needs a group, and the consumer has none (INVALID_GROUP_ID (24)). "
                "Subscriptions and commits belong to a group. Set group_id, or use assign() and seek().",
                code=INVALID_GROUP_ID,
                name="INVALID_GROUP_ID",
            )
        return self.group_or_none
