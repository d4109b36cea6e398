"""What the cluster as a whole has switched on, as the answers to ApiVersions tell on every connection.

A broker of a newer release lists a new request before it may be used; a feature is finalized once all brokers agreed.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.generated.api_versions_response import ApiVersionsResponse

GROUP_VERSION = "group.version"


@attrs.define
class Features:
    """Finalized features by name, their level 1 or higher, as of an epoch; a broker that lags changes nothing."""

    epoch: int = -1
    levels: Mapping[str, int] = attrs.field(factory=dict)
    apis: frozenset[int] = frozenset()  # what the broker offers that answered last

    def learn(self, answer: ApiVersionsResponse) -> None:
        """Take over what an answer without an error says."""
        self.apis = frozenset(api.api_key for api in answer.api_keys)
        if answer.finalized_features_epoch >= max(self.epoch, 0):  # −1: it does not know
            self.epoch = answer.finalized_features_epoch
            self.levels = {one.name: one.max_version_level for one in answer.finalized_features}
