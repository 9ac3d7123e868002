"""The shipped manifests hold together: kinds, rights, deployment, policies."""
