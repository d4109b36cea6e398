"""Calls and keyword arguments of other clients for Python that the consumers do not have: what to write here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

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


_LISTENER: Final = (
    "write listener=…, an object with on_partitions_assigned, on_partitions_revoked, on_partitions_lost"
)
OTHER_KEYWORDS: Final[dict[str, dict[str, str]]] = {
    "subscribe": {"on_assign": _LISTENER, "on_revoke": _LISTENER, "on_lost": _LISTENER},
    "commit": {
        "asynchronous": "commit() waits for the response; write commit_async(offsets, callback)",
        "message": "write commit({TopicPartition(record.topic, record.partition): record.offset + 1})",
        "timeout_ms": "write timeout, with seconds",
    },
}
"""Call → keyword argument of another client's call of this name → what to write."""

F = TypeVar("F", bound=Callable[..., Any])


def answers_other_keywords(call: F) -> F:
    """Decorate a call so that a TypeError for another client's keyword argument says what to write."""
    keywords = OTHER_KEYWORDS[call.__name__]

    def check(given: dict[str, Any]) -> None:
        for name in given.keys() & keywords.keys():
            raise TypeError(
                f"{call.__name__}() got an unexpected keyword argument {name!r}, which is another client's: "
                f"{keywords[name]}"
            )

    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def checked_async(*args: Any, **kwargs: Any) -> Any:
            check(kwargs)
            return await call(*args, **kwargs)

        return cast(F, checked_async)

    @functools.wraps(call)
    def checked(*args: Any, **kwargs: Any) -> Any:
        check(kwargs)
        return call(*args, **kwargs)

    return cast(F, checked)


def no_attribute(consumer: object, name: str) -> AttributeError:
    """Return the error for an attribute that a consumer does not have. Python adds a similar name if there is one."""
    text = f"{type(consumer).__name__!r} object has no attribute {name!r}"
    if name in OTHER_CALLS:
        text += f", which is another client's: {OTHER_CALLS[name]}"
    return AttributeError(text, name=name, obj=consumer)
