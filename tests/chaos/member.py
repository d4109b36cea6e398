"""A process with members of one group: `python -m tests.chaos.member ORDER`, an order in JSON.

They read, write down what they see, and commit, until SIGTERM; then they close. An error that a member does not expect
ends the process, and with it everything that its other members could have hidden.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import traceback
from pathlib import Path

from tests.chaos.journal import Journal
from tests.chaos.member_journal import MemberJournal
from tests.chaos.member_settings import Order


def main(text: str) -> None:
    """Be the members until SIGTERM."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s.%(msecs)03d %(threadName)s %(name)s %(message)s"
    )
    order = Order.from_json(text)
    signal.signal(signal.SIGTERM, lambda *_: setattr(order, "stopping", True))
    journal = Journal(Path(order.journal))
    diaries = [MemberJournal(journal, name) for name in order.names]
    for diary in diaries:
        diary.tell("began")
    if order.kind == "async":
        asyncio.run(run_async(order, diaries))
    else:
        run_threads(order, diaries)


async def run_async(order: Order, diaries: list[MemberJournal]) -> None:
    """All on one loop."""
    from tests.chaos.kclient_members import AsyncMember

    async with asyncio.TaskGroup() as tasks:
        for diary in diaries:
            tasks.create_task(AsyncMember(order, diary).run())


def run_threads(order: Order, diaries: list[MemberJournal]) -> None:
    """Each on a thread of its own; this one is left to signals."""
    if order.kind == "sync":
        from tests.chaos.kclient_members import SyncMember as Kind
    else:
        from tests.chaos.librdkafka_members import TheirMember as Kind  # type: ignore[assignment]
    threading.excepthook = end
    threads = [threading.Thread(target=Kind(order, diary).run, name=diary.name) for diary in diaries]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # with a limit, so that the signal's handler gets its turn
            thread.join(0.1)


def end(args: threading.ExceptHookArgs) -> None:
    """The process ends with the first of its members that fails."""
    traceback.print_exception(args.exc_type, args.exc_value, args.exc_traceback)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
