"""What the cluster has switched on: the newest response counts, and one that does not know changes nothing."""

from __future__ import annotations

import pytest

from kclient.generated.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from kclient.network.api_versions import Features

HEARTBEAT = 68


def answer(epoch: int, level: int, *apis: int) -> ApiVersionsResponse:
    """A response that says how far group.version is."""
    finalized = [FinalizedFeatureKey(name="group.version", max_version_level=level, min_version_level=level)]
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key) for key in apis],
        finalized_features_epoch=epoch,
        finalized_features=finalized,
    )


@pytest.mark.spec("B.4.4")
def test_levels_follow_the_newest_epoch_and_apis_the_last_response() -> None:
    features = Features()
    features.learn(answer(5, 1, 1, HEARTBEAT))
    assert (features.levels, features.apis) == ({"group.version": 1}, {1, HEARTBEAT})
    features.learn(answer(4, 0, 1))
    assert (features.levels, features.apis) == ({"group.version": 1}, {1})
    features.learn(answer(6, 0, 1))
    assert features.levels == {"group.version": 0}


@pytest.mark.spec("B.4.4")
def test_a_response_that_does_not_know_the_epoch_reports_no_levels() -> None:
    features = Features()
    features.learn(answer(-1, 1, HEARTBEAT))
    assert features.levels == {}
