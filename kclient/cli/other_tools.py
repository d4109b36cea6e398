"""What Kafka's scripts, kcat and rpk call a command or an option, and what to write here for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

CONSUME: Final = "consume"
BROKERS: Final = re.compile("--(bootstrap|brokers?|servers?)")
"""The names that other tools have for -b."""

OTHER_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    CONSUME: {
        "--from-beginning": "Leave it out: consume begins at the beginning unless -o says otherwise",
        "--max-messages": "Write -n N",
        "--num": "Write -n N",
        "--timeout-ms": "Write -e to stop at the end, or --until PLACE",
        "--topic": "Write the topics without an option: consume TOPIC",
        "-t": "Write the topics without an option: consume TOPIC",
        "--consumer-property": "Write --set KEY=VALUE",
        "--command-property": "Write --set KEY=VALUE",
        "--consumer.config": "Write --config FILE",
        "--command-config": "Write --config FILE",
        "--property": "Write -f FORMAT, such as -f '%k %s\\n' for key and value",
        "--formatter-property": "Write -f FORMAT, such as -f '%k %s\\n' for key and value",
        "--since": "Write -o @-1h",
        "--from": "Write -o PLACE, such as -o @-1h",
        "--start": "Write -o PLACE, such as -o @-1h",
        "--to": "Write --until PLACE, such as --until @-5m",
        "--end": "Write --until PLACE, such as --until @-5m",
        "--tail": "Write -o -N for the last N of each partition, or -o end",
        "--follow": "Leave it out: consume waits for more unless -e, --until or -n stops it",
    },
    "produce": {
        "--topic": "Write the topic without an option: produce TOPIC",
        "-t": "Write the topic without an option: produce TOPIC",
        "--property": "Write -K SEPARATOR for lines of key and value",
        "--reader-property": "Write -K SEPARATOR for lines of key and value",
        "--producer-property": "Write --set KEY=VALUE",
        "--command-property": "Write --set KEY=VALUE",
        "--producer.config": "Write --config FILE",
        "--command-config": "Write --config FILE",
    },
    "topics": {
        "--list": "Leave it out: topics lists them",
        "--describe": "Write topics describe TOPIC",
        "--topic": "Write topics describe TOPIC",
        "--create": "kclient makes no topics: use kafka-topics.sh, rpk or an admin client",
        "--delete": "kclient deletes no topics: use kafka-topics.sh, rpk or an admin client",
        "--command-config": "Write --config FILE",
    },
    "groups": {
        "--list": "Leave it out: groups lists them",
        "--all-groups": "Leave it out: groups lists all",
        "--describe": "Write groups describe GROUP",
        "--group": "Write groups describe GROUP",
        "--reset-offsets": "Write groups reset GROUP",
        "--delete": "Write groups delete GROUP",
        "--command-config": "Write --config FILE",
    },
    "groups describe": {"--group": "Write the group without an option: groups describe GROUP"},
    "groups reset": {
        "--group": "Write the group without an option: groups reset GROUP",
        "--dry-run": "Leave it out: nothing is changed without --execute",
    },
    "groups delete": {"--group": "Write the group without an option: groups delete GROUP"},
}
"""Command → another tool's option → what to write."""

OTHER_COMMANDS: Final[Mapping[str, str]] = {
    "cat": "consume TOPIC",
    "console-consumer": "consume TOPIC",
    "tail": "consume TOPIC -o end",
    "read": "consume TOPIC",
    "console-producer": "produce TOPIC",
    "describe": "topics describe TOPIC, or groups describe GROUP",
    "list": "topics, or groups",
    "ls": "topics, or groups",
    "reset": "groups reset GROUP",
    "reset-offsets": "groups reset GROUP",
    "seek": "groups reset GROUP",
    "offsets": "groups describe GROUP, or topics describe TOPIC",
    "consumer-groups": "groups",
    "ping": "doctor",
    "status": "doctor, or lag GROUP",
    "cluster": "doctor",
    "metadata": "topics, or doctor",
}
"""A word that is no command here → the command that does what it means."""

NOT_HERE: Final = frozenset({"create", "add", "alter", "add-partitions"})
"""What administrators do to topics, and kclient does not."""


def option_answer(command: str, name: str, *, knows_brokers: bool) -> str | None:
    """Return what to write for another tool's option of a command (`groups reset`), None if it is no such option."""
    if knows_brokers and BROKERS.match(name):
        return "Say where the cluster is with -b HOST:PORT"
    return OTHER_OPTIONS.get(command, {}).get(name)


def words_answer(command: str, words: Sequence[str]) -> str | None:
    """Return what to write where words follow `topics` or `groups` that are none of their commands."""
    if command not in ("topics", "groups"):
        return None
    if words[0] in NOT_HERE or (words[0] == "delete" and command == "topics"):
        return (
            f"kclient makes, changes and deletes no {command}: use Kafka's scripts, rpk or an admin client."
        )
    return f"To see one, write {command} describe {' '.join(words)}."
