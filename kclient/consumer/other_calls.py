"""Calls of other clients for Python that the consumers do not have, and what does their work here."""

from __future__ import annotations

from typing import Final

OTHER_CALLS: Final[dict[str, str]] = {
    # confluent-kafka
    "cluster_id": "kclient has no call for it",
    "consume": "write poll(timeout, max_records=N)",
    "consumer_group_metadata": "write group_metadata()",
    "get_watermark_offsets": "write beginning_offsets([tp]) and end_offsets([tp])",
    "incremental_assign": "a cooperative rebalance changes the assignment; a listener gets the difference",
    "incremental_unassign": "a cooperative rebalance changes the assignment; a listener gets the difference",
    "memberid": "write group_metadata().member_id",
    "set_sasl_credentials": "give sasl_password a function: it is called for each new connection",
    "store_offsets": "a record is committed after the next one was asked for; or write enable_auto_commit=False and "
    "commit({tp: offset + 1})",
    "unassign": "write unsubscribe()",
    # aiokafka and kafka-python
    "bootstrap": "the first call connects, and raises if no broker can be reached",
    "bootstrap_connected": "the first call connects, and raises if no broker can be reached",
    "getmany": "write poll(timeout, max_records), with seconds",
    "getone": "iterate over the consumer, or write poll(timeout, max_records=1)",
    "highwater": "write current_lag(tp), or end_offsets([tp])",
    "last_poll_timestamp": "metrics() has last-poll-seconds-ago",
    "last_stable_offset": "write current_lag(tp), or end_offsets([tp])",
    "partitions_for_topic": "write partitions_for(topic)",
    "seek_to_committed": "write seek(tp, offset) with the offset that committed([tp]) returns",
    "start": "the first call connects",
    "stop": "write close(), or leave a with block",
    "topics": "write list_topics()",
}


def no_attribute(consumer: object, name: str) -> AttributeError:
    """Return the error for an attribute that a consumer does not have. Python adds a similar name if there is one."""
    text = f"{type(consumer).__name__!r} object has no attribute {name!r}"
    if name in OTHER_CALLS:
        text += f", which is another client's: {OTHER_CALLS[name]}"
    return AttributeError(text, name=name, obj=consumer)
