"""The serving certificate: from files that an operator keeps, or from a Secret that we keep.

With a Secret there is one writer, the holder of the Lease, and every process reads it. The writer
tells the API server of a new authority before it stores what the authority signed: from then on
both are trusted, so it does not matter when each process changes its certificate.
"""

import asyncio
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from app.controllers.ports import Api, ApiError, Failure
from app.kit import certificates
from app.kit.certificates import Material
from app.main.serving.serving_tls import CertificateFiles
from app.wire import kinds
from app.wire.unstructured import Key, Object, version

log = logging.getLogger(__name__)

READ_EVERY_S: Final = 10.0
FIRST_READS_S: Final = 0.3
KEEP_EVERY_S: Final = 60.0
RETRY_S: Final = 2.0

Register = Callable[[bytes], Awaitable[None]]
"""Tells the API server whose certificates to trust; raises ApiError."""


class KeptCertificate:
    """The Secret, and the files that it is written to for the server."""

    def __init__(
        self,
        api: Api,
        secret: Key,
        *,
        names: Sequence[str],
        now: Callable[[], datetime],
    ) -> None:
        self._api = api
        self._key = secret
        self._names = names
        self._now = now
        self._folder = tempfile.TemporaryDirectory(prefix="pumice-webhooks-")
        folder = Path(self._folder.name)
        self.files = CertificateFiles(folder / "tls.crt", folder / "tls.key")
        self.present = asyncio.Event()
        """Set once there are files."""
        self._material: Material | None = None

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    async def follow(self) -> None:
        """Write what is in the Secret whenever it is something new; cancel to stop."""
        while True:
            try:
                _, material = await self._read()
            except ApiError as error:
                log.warning("certificate not read", extra={"why": str(error)})
                material = None
            if material is not None:
                self._write(material)
            await asyncio.sleep(READ_EVERY_S if self.present.is_set() else FIRST_READS_S)

    async def keep(self, register: Register) -> None:
        """Renew in time and register; only the holder of the Lease does; cancel to stop."""
        while True:
            try:
                await self._keep_once(register)
            except ApiError as error:
                log.warning("certificate not kept", extra={"why": str(error)})
                await asyncio.sleep(RETRY_S)
            else:
                await asyncio.sleep(KEEP_EVERY_S)

    async def _keep_once(self, register: Register) -> None:
        stored, material = await self._read()
        wanted = certificates.renewed(material, self._names, self._now())
        if material is None:
            await self._store(stored, wanted)
        await register(wanted.authority)
        if material is not None and wanted != material:
            await self._store(stored, wanted)

    async def _read(self) -> tuple[Object | None, Material | None]:
        try:
            stored = await self._api.get(kinds.SECRETS, self._key)
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                return None, None
            raise
        return stored, certificates.from_secret(stored)

    async def _store(self, stored: Object | None, material: Material) -> None:
        """Write the Secret, unless another process wrote it since it was read."""
        item = certificates.secret(material, namespace=self._key.namespace, name=self._key.name)
        if stored is None:
            await self._api.create(kinds.SECRETS, item)
        else:
            item["type"] = stored.get("type") or item["type"]
            item["metadata"]["resourceVersion"] = version(stored)
            await self._api.update(kinds.SECRETS, item)
        log.info("certificate renewed", extra={"secret": str(self._key)})
        self._write(material)

    def _write(self, material: Material) -> None:
        if material == self._material:
            return
        for path, content in (
            (self.files.key, material.key),
            (self.files.certificate, material.certificate),
        ):
            _replace(path, content)
        self._material = material
        self.present.set()


def _replace(path: Path, content: bytes) -> None:
    """Write for our eyes only, whole or not at all."""
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(content)
    os.replace(fresh, path)
