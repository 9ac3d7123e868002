"""The API-server adapter: the only package that talks to Kubernetes.

Two ways lead out of it. *Reading* is done by informers, one thread per kind: they list and watch
over a streaming connection, decode in their thread and hand batches to the event loop through a
mailbox. *Writing* is done in the event loop by one aiohttp client. Both take their address,
certificates and credentials from the same `Connection`, and both speak of failure in the same error
tree, which is divided by how a caller should react.

Nothing here knows what a pod or a queue means: decoders come in from above as functions, and the
ports of the services are met by structure, not by import.
"""
