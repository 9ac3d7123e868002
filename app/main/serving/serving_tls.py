"""The files that a server proves itself with, taken anew when they change.

A listening server takes a new certificate through its TLS context: connections that stand go on,
new ones get the new one. Authorities of clients are added in the same way; one that is in the file
no more is trusted until the process ends, as a context forgets none.
"""

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.main.conf_file import Stamp, stamp

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where the certificate and its key are, and the authority of clients if they are asked."""

    certificate: Path
    key: Path
    client_authority: Path | None = None

    def load_into(self, context: ssl.SSLContext) -> None:
        """Use the files for new connections; OSError (ssl.SSLError) when they do not fit.

        They are tried first: a context that refuses a key has given up the pair it had.
        """
        for each in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
            each.load_cert_chain(self.certificate, self.key)
            if self.client_authority is not None:
                each.load_verify_locations(self.client_authority)

    def stamps(self) -> tuple[Stamp, ...]:
        """What changes when one of them does; None in it for one that is not there."""
        authority = () if self.client_authority is None else (self.client_authority,)
        return tuple(stamp(path) for path in (self.certificate, self.key, *authority))


async def follow_files(files: CertificateFiles, context: ssl.SSLContext) -> None:
    """Take a new certificate as soon as all files are in order; cancel to stop."""
    seen = files.stamps()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        now = files.stamps()
        if now == seen or None in now:
            continue
        try:
            files.load_into(context)
        except OSError as error:
            # Half of a pair: the other half is written next.
            log.warning("certificate not taken", extra={"why": str(error)})
            continue
        seen = now
        log.info("certificate taken", extra={"file": str(files.certificate)})
