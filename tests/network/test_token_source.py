"""The token of a client: requested once for all connections, renewed before it expires, kept where that fails."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import pairwise
from typing import Any

import attrs
import pytest

from kclient import OAuthToken
from kclient.network import token_source
from kclient.network.backoff import Backoff
from kclient.network.token_source import RefreshTiming, TokenError, TokenProvider, TokenSource
from kclient.runtime import Runtime
from kclient.security.oauthbearer import unsecured_token
from kclient.simulation.world import EPOCH, World
from kclient.simulation.world import run as simulate

MINUTE, HOUR = 60.0, 3_600.0
EIGHT = 8 * HOUR


@attrs.define
class Clock:
    """The time, and a wall clock that is wrong by `skew`."""

    now: float = EIGHT
    skew: float = 0.0

    def source(
        self, provider: TokenProvider, backoff: Backoff | None = None, timeout: float = 20.0
    ) -> TokenSource:
        runtime = ClockRuntime(wall_clock=lambda: self.now + self.skew, clock=self)
        backoff = backoff or Backoff(100, 10_000, runtime.rng)
        return TokenSource(provider, RefreshTiming(), backoff, runtime, timeout)


@attrs.define
class ClockRuntime(Runtime):
    """Counts the seconds of that clock."""

    clock: Clock = attrs.field(factory=Clock)

    def now(self) -> float:
        return self.clock.now


class WithoutJitter:
    """A random generator for Backoff."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


@attrs.define
class Provider:
    """Returns tokens of one hour, and counts the calls."""

    clock: Clock
    error: Exception | None = None
    calls: int = 0
    lifetime: float = HOUR

    async def __call__(self) -> OAuthToken:
        self.calls += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return OAuthToken(
            value=f"t{self.calls}", expires_at=self.clock.now + self.lifetime, issued_at=self.clock.now
        )


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 30))


def token(began: float, ends: float) -> OAuthToken:
    return OAuthToken(value="t", issued_at=began, expires_at=ends)


@pytest.mark.parametrize(
    ("minutes", "earliest", "latest"),
    [(60, 48, 51), (20, 15, 15), (5, 4, 4.25), (1, 0.8, 0.85)],
)
def test_a_token_is_due_when_kafkas_keys_say(minutes: float, earliest: float, latest: float) -> None:
    whole = token(EIGHT, EIGHT + minutes * MINUTE)
    due = [RefreshTiming().refresh_at(whole, EIGHT, draw) for draw in (0.0, 1.0)]
    assert due == [EIGHT + earliest * MINUTE, EIGHT + latest * MINUTE]


def test_a_token_received_late_in_its_life_is_kept_for_the_least_period() -> None:
    old = token(EIGHT - 10 * HOUR, EIGHT + HOUR)
    assert RefreshTiming().refresh_at(old, EIGHT, 0.0) == EIGHT + MINUTE


def test_connections_that_ask_together_cause_one_request() -> None:
    async def scenario() -> None:
        clock = Clock()
        provider = Provider(clock)
        source = clock.source(provider)
        found = await asyncio.gather(*(source.token() for _ in range(5)))
        assert {each.value for each in found} == {"t1"}
        clock.now += 47 * MINUTE
        assert (await source.token()).value == "t1"
        clock.now += 5 * MINUTE
        assert (await source.token()).value == "t2"

    run(scenario)


def test_a_connection_that_gives_up_does_not_cancel_the_request_of_another() -> None:
    async def scenario() -> None:
        clock, go_on = Clock(), asyncio.Event()

        async def slow() -> OAuthToken:
            await go_on.wait()
            return token(clock.now, clock.now + HOUR)

        source = clock.source(slow)
        first, second = (asyncio.create_task(source.token()) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        go_on.set()
        assert (await second).value == "t"
        assert first.cancelled()

    run(scenario)


def test_a_failure_is_a_warning_while_the_old_token_is_valid(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        clock = Clock()
        provider = Provider(clock)
        source = clock.source(provider)
        await source.token()
        clock.now += 52 * MINUTE
        provider.error = OSError("the endpoint hunter2 is down")
        with caplog.at_level(logging.WARNING, "kclient.auth"):
            assert (await source.token()).value == "t1"
        (line,) = (record.getMessage() for record in caplog.records)
        assert "failed with OSError" in line
        assert "valid for 480 s more" in line
        assert "hunter2" not in line
        clock.now += 8 * MINUTE - 1.5  # no broker grants a session of so little
        with pytest.raises(TokenError, match="OSError"):
            await source.token()
        provider.error = None
        with pytest.raises(TokenError, match="OSError"):
            await source.token()  # within the backoff
        clock.now += 1.0
        assert (await source.token()).value == "t4"

    run(scenario)


def test_a_provider_that_hangs_delays_no_connection_while_the_old_token_is_valid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(token_source, "PATIENCE_SECONDS", 0.01)

    async def scenario() -> None:
        clock, go_on = Clock(), asyncio.Event()
        provider = Provider(clock)

        async def sometimes_slow() -> OAuthToken:
            if provider.calls:
                await go_on.wait()
            return await provider()

        source = clock.source(sometimes_slow)
        await source.token()
        clock.now += 52 * MINUTE
        assert [(await source.token()).value for _ in range(2)] == ["t1", "t1"]
        clock.now += 8 * MINUTE  # expired: nothing is left but to wait
        late = asyncio.create_task(source.token())
        await asyncio.sleep(0.05)
        assert not late.done()
        go_on.set()
        assert (await late).value == "t2"
        assert provider.calls == 2

    run(scenario)


def test_after_a_failure_the_provider_rests_twice_as_long_each_time() -> None:
    async def scenario() -> None:
        clock = Clock()
        provider = Provider(clock)
        source = clock.source(provider, Backoff(1_000, 3_000, WithoutJitter()))
        await source.token()
        clock.now += 52 * MINUTE
        provider.error = OSError()
        calls = []
        for _ in range(8):
            await source.token()
            calls.append(provider.calls)
            clock.now += 1.0
        assert calls == [2, 3, 3, 4, 4, 4, 5, 5]

    run(scenario)


def test_a_token_is_renewed_when_it_is_due_though_no_connection_asks() -> None:
    """On a virtual clock: tokens of an hour, and an endpoint that is down when the second one is due."""
    calls: list[float] = []

    async def main(world: World) -> OAuthToken:
        async def provider() -> OAuthToken:
            now = world.loop.time()
            calls.append(now)
            if 48 * MINUTE <= now < 52 * MINUTE:
                raise OSError
            return token(EPOCH + now, EPOCH + now + HOUR)

        runtime = world.runtime("client")
        source = TokenSource(
            provider, RefreshTiming(), Backoff(1_000, 60_000, WithoutJitter()), runtime, 20.0
        )
        await source.token()
        await asyncio.sleep(59 * MINUTE)
        kept = await source.token()
        await source.close(1.0)
        await asyncio.sleep(2 * HOUR)
        return kept

    kept = simulate(7, main, limit=4 * HOUR).result
    assert 48 * MINUTE <= calls[1] <= 51 * MINUTE
    assert [round(after - before) for before, after in pairwise(calls[1:6])] == [1, 2, 4, 8]
    assert calls[-1] < 54 * MINUTE  # and none after close()
    assert kept.issued_at == EPOCH + calls[-1]


def test_without_a_token_no_request_comes_that_no_connection_asked_for() -> None:
    calls: list[float] = []

    async def main(world: World) -> None:
        async def provider() -> OAuthToken:
            calls.append(world.loop.time())
            if len(calls) > 1:
                raise OSError
            return token(EPOCH, EPOCH + HOUR)

        runtime = world.runtime("client")
        source = TokenSource(
            provider, RefreshTiming(), Backoff(1_000, 60_000, WithoutJitter()), runtime, 20.0
        )
        source.discard(await source.token())
        await asyncio.sleep(HOUR)
        assert len(calls) == 1
        with pytest.raises(TokenError):
            await source.token()
        await asyncio.sleep(HOUR)

    simulate(7, main, limit=4 * HOUR)
    assert len(calls) == 2


def test_without_a_token_the_last_error_stands_until_the_backoff_is_over() -> None:
    async def scenario() -> None:
        clock = Clock()
        provider = Provider(clock, error=OSError())
        source = clock.source(provider, Backoff(1_000, 3_000, WithoutJitter()))
        calls = []
        for _ in range(8):
            with pytest.raises(TokenError, match="OSError"):
                await source.token()
            calls.append(provider.calls)
            clock.now += 0.5
        assert calls == [1, 1, 2, 2, 2, 2, 3, 3]

    run(scenario)


def test_a_kept_token_comes_well_before_the_deadline_of_the_connection() -> None:
    async def scenario() -> None:
        clock = Clock()
        provider = Provider(clock)

        async def sometimes_slow() -> OAuthToken:
            await asyncio.sleep(600.0 if provider.calls else 0.0)
            return await provider()

        source = clock.source(sometimes_slow)
        await source.token()
        clock.now += 52 * MINUTE
        began = time.monotonic()
        assert (await source.token(clock.now + 0.2)).value == "t1"
        assert time.monotonic() - began < 2.0
        await source.close(1.0)

    run(scenario)


def test_a_provider_that_hangs_delays_connections_once_and_not_each_of_them() -> None:
    async def scenario() -> None:
        clock = Clock()
        provider = Provider(clock)

        async def sometimes_slow() -> OAuthToken:
            await asyncio.sleep(600.0 if provider.calls else 0.0)
            return await provider()

        source = clock.source(sometimes_slow)
        await source.token()
        clock.now += 52 * MINUTE
        first = asyncio.create_task(source.token())
        await asyncio.sleep(0.01)
        clock.now += token_source.PATIENCE_SECONDS
        began = time.monotonic()
        assert (await source.token()).value == "t1"
        assert time.monotonic() - began < 2.0
        first.cancel()
        await source.close(1.0)

    run(scenario)


def test_a_coroutine_that_never_returns_is_cancelled_and_called_again() -> None:
    async def scenario() -> None:
        clock, cancelled = Clock(), []
        provider = Provider(clock)

        async def hanging() -> OAuthToken:
            if not cancelled:
                try:
                    await asyncio.sleep(600.0)
                except asyncio.CancelledError:
                    cancelled.append(True)
                    raise
            return await provider()

        source = clock.source(hanging, timeout=0.05)
        with pytest.raises(TokenError, match=r"has not returned within 0\.05 s"):
            await source.token()
        clock.now += 1.0
        assert (await source.token()).value == "t1"
        assert cancelled == [True]

    run(scenario)


def test_a_function_that_hangs_in_its_thread_is_not_called_beside_it() -> None:
    async def scenario() -> None:
        clock, go_on, calls = Clock(), threading.Event(), []

        def hanging() -> OAuthToken:
            calls.append(True)
            assert go_on.wait(20.0)
            return token(clock.now, clock.now + HOUR)

        source = clock.source(hanging, timeout=0.05)
        for _ in range(3):
            with pytest.raises(TokenError, match="has not returned within"):
                await source.token()
            clock.now += 11.0
        go_on.set()
        for _ in range(100):  # until the thread has returned
            with suppress(TokenError):
                assert (await source.token()).value == "t"
                break
            clock.now += 11.0
        assert calls == [True]

    run(scenario)


def test_a_token_that_is_refused_while_its_renewal_is_awaited_is_not_returned() -> None:
    async def scenario() -> None:
        clock, go_on = Clock(), asyncio.Event()
        provider = Provider(clock)

        async def sometimes_slow() -> OAuthToken:
            if provider.calls:
                await go_on.wait()
            return await provider()

        source = clock.source(sometimes_slow)
        kept = await source.token()
        clock.now += 52 * MINUTE
        asking = asyncio.create_task(source.token(clock.now + 0.2))
        await asyncio.sleep(0.01)
        source.discard(kept)
        await asyncio.sleep(0.2)
        assert not asking.done()
        go_on.set()
        assert (await asking).value == "t2"

    run(scenario)


def test_a_client_that_is_closed_leaves_no_request() -> None:
    async def scenario() -> None:
        async def hanging() -> OAuthToken:
            await asyncio.sleep(600.0)
            raise AssertionError

        source = Clock().source(hanging)
        asking = asyncio.create_task(source.token())
        await asyncio.sleep(0.01)
        await source.close(5.0)
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert "kclient token" not in {task.get_name() for task in asyncio.all_tasks()}

    run(scenario)


def test_a_provider_that_catches_its_cancellation_is_not_called_after_close() -> None:
    calls: list[float] = []

    async def main(world: World) -> None:
        async def provider() -> OAuthToken:
            calls.append(world.loop.time())
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(600.0)
            return token(EPOCH, EPOCH + HOUR)

        backoff = Backoff(1_000, 60_000, WithoutJitter())
        source = TokenSource(provider, RefreshTiming(), backoff, world.runtime("client"), 20.0)
        asking = asyncio.create_task(source.token())
        await asyncio.sleep(1.0)
        await source.close(5.0)
        await asking
        await asyncio.sleep(2 * HOUR)

    simulate(7, main, limit=4 * HOUR)
    assert len(calls) == 1


@pytest.mark.parametrize("skew", [-HOUR, 0.0])
def test_a_clock_that_is_behind_does_not_make_a_token_last_longer(skew: float) -> None:
    """The token says when it was issued, and that cannot be in the future."""

    async def scenario() -> None:
        clock = Clock(skew=skew)
        provider = Provider(clock, lifetime=5 * MINUTE)
        source = clock.source(provider)
        await source.token()
        clock.now += 0.79 * 5 * MINUTE
        assert (await source.token()).value == "t1"
        clock.now += 0.07 * 5 * MINUTE
        assert (await source.token()).value == "t2"

    run(scenario)


def test_a_wall_clock_that_jumps_back_does_not_make_a_token_last_longer() -> None:
    async def scenario() -> None:
        clock = Clock()
        provider = Provider(clock)
        source = clock.source(provider)
        await source.token()
        clock.skew = -HOUR
        clock.now += 52 * MINUTE
        assert (await source.token()).value == "t2"

    run(scenario)


def test_a_refused_token_is_not_sent_again() -> None:
    async def scenario() -> None:
        clock = Clock()
        source = clock.source(Provider(clock))
        first = await source.token()
        source.discard(first)
        second = await source.token()
        source.discard(first)  # late news of the first leave the second alone
        assert (second.value, (await source.token()).value) == ("t2", "t2")

    run(scenario)


def test_a_plain_function_runs_in_a_thread_and_may_return_a_jwt() -> None:
    async def scenario() -> None:
        clock, threads = Clock(), []

        def provider() -> str:
            threads.append(threading.current_thread())
            return unsecured_token({"sub": "alice", "iat": clock.now, "exp": clock.now + HOUR})

        found = await clock.source(provider).token()
        assert (found.principal, found.expires_at) == ("alice", clock.now + HOUR)
        assert threads != [threading.current_thread()]

    run(scenario)


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("secret", "cannot be used: a JSON Web Token has three parts"),
        (unsecured_token({"sub": "secret"}), "has no claim exp"),
        (unsecured_token({"exp": EIGHT - 1}), "has expired, or the clock"),
        (None, "must return an OAuthToken or the text of a JSON Web Token, not NoneType"),
        (b"secret", "not bytes"),
    ],
)
def test_what_is_no_token_is_refused_without_showing_it(returned: Any, text: str) -> None:
    async def scenario() -> None:
        with pytest.raises(TokenError, match=text) as caught:
            await Clock().source(lambda: returned).token()
        assert "secret" not in str(caught.value)

    run(scenario)


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError])
def test_a_provider_that_exits_or_is_cancelled_ends_neither_the_loop_nor_the_request(
    error: type[BaseException],
) -> None:
    def plain() -> str:
        raise error

    async def coroutine() -> str:
        raise error

    async def scenario() -> None:
        for provider in (plain, coroutine):
            with pytest.raises(TokenError, match=f"failed with {error.__name__}"):
                await Clock().source(provider).token()

    run(scenario)
