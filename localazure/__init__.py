"""A real API of Azure Blob Storage on loopback for tests: Microsoft's Azurite in Node.js, with files for its objects.

    with AzureServer() as azure:
        azure.create_container("lake")
        os.environ.update(azure.environment)   # for clients that read AZURE_STORAGE_*

Node.js comes in a wheel of the development dependencies, and npm with it, which fetches Azurite the first time.
Nothing here imports kclient: what judges it must not be made of it.

What its conditional writes do, found by trying (`tests/spark/test_store_services.py` runs it again):

| request | Azurite 3.37.0 |
|---|---|
| Put Blob `If-None-Match: *`, 8 at once on one key | one 201, seven 409 BlobAlreadyExists, as Azure |
| Get Blob in a container that does not exist | 404 ContainerNotFound |
| Submit Batch, with which obstore deletes, with a SAS token | 500, it is missing: tests take the account's key |

It is an account with a flat namespace, and has no API of Data Lake Storage (`dfs`): who needs that fails here.
"""

from __future__ import annotations

from localazure.server import AzureServer, unavailable

__all__ = ["AzureServer", "unavailable"]
