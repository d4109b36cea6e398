"""One question about a group, put to its coordinator until it answers.

code      15, 16             the coordinator has moved: looked up anew
code      14, retriable      again after a pause
anything else                the answer; what its code means is the asker's business
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kclient.config import Config
from kclient.errors import KclientError
from kclient.group.coordinator import MOVED, Coordinator
from kclient.group.form import Answer, Form
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.protocol import errors as codes
from kclient.runtime import Runtime

logger = get_logger("kclient.coordinator")


async def ask_coordinator(
    coordinator: Coordinator,
    kind: type[Answer],
    *forms: Form,
    code_of: Callable[[Answer], int],
    config: Config,
    runtime: Runtime,
) -> Answer:
    """The first answer whose code no other try may cure. The caller bounds it.

    Raises what `Coordinator.ensure` raises, and VersionError where the coordinator has no version for any form.
    """
    backoff = Backoff.for_retries(config, runtime)
    while True:
        try:
            await coordinator.ensure()
            answer = await coordinator.request(kind, *forms)
        except KclientError as exc:
            if not exc.retriable:
                raise
            logger.debug("group %s: %s not answered yet: %s", coordinator.group_id, kind.NAME, exc.text)
        else:
            code = codes.error(code_of(answer))
            if not code.retriable:
                return answer
            if code.code in MOVED:
                coordinator.mark_unknown(f"it answered {code.name} ({code.code})")
        await asyncio.sleep(backoff.next())
