"""A program: the kubelets of all nodes whose name has a prefix, until it is ended."""

import asyncio
import sys
from pathlib import Path

from app.kube import config
from app.kube.client import ApiClient
from app.main.adapters.kubelet_api import HttpKubeletApi, watching
from app.sandbox.clock import WallClock
from app.sandbox.kubelet import Kubelet


async def serve(kubeconfig: Path, prefix: str) -> None:
    """Play them for ever."""
    connection = config.load(kubeconfig)
    async with ApiClient(connection) as client, watching() as session:
        api = HttpKubeletApi(client, connection=connection, session=session)
        kubelet = Kubelet(api, clock=WallClock(), serves=lambda node: node.startswith(prefix))
        await kubelet.run()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))
