"""What `explain()` gives back: one sentence for each assigned partition, and one for the consumer as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from kclient.text import LONGEST_TEXT, printable
from kclient.types import TopicPartition


@attrs.frozen(repr=False, eq=False)
class Explanation(Mapping[TopicPartition, str]):
    """Partition → why it delivers nothing now, or what the next poll will deliver. `str()` is a table.

    `consumer` says where the consumer as a whole stands: without an assignment it is the whole answer.
    """

    consumer: str
    partitions: Mapping[TopicPartition, str]

    def __getitem__(self, partition: TopicPartition) -> str:
        return self.partitions[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __str__(self) -> str:
        names = {tp: printable(str(tp)) for tp in self.partitions}
        width = max(map(len, names.values()), default=0)
        lines = [f"{names[tp]:<{width}}  {sentence}" for tp, sentence in self.partitions.items()]
        return "\n".join(printable(line, LONGEST_TEXT) for line in (self.consumer, *lines))

    __repr__ = __str__
