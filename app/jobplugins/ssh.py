"""ssh: the pods of a job log in to each other without a password.

A Secret holds one key pair for the whole job and a client configuration in which every pod is a
host; all containers mount it. The keys are made when the Secret is, and stay as long as it does;
the configuration follows the replicas, for pods that start later (a mounted sub-path does not
change under a running container).
"""

from functools import partial

from app.jobplugins import keys, pods
from app.jobplugins.keys import KeyPair, MakeKeys
from app.jobplugins.owned import owned
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.rules.arguments import Ssh
from app.jobplugins.rules.job_tasks import label
from app.jobplugins.rules.problems import PluginError, Problem, path_of
from app.jobplugins.wanted import Once, Wanted
from app.wire.kinds import SECRETS
from app.wire.unstructured import Object

DEFAULT_PATH = Ssh().key_file_path
OWNER_ONLY = 0o600
READABLE = 0o644
"""Where the keys are not root's, another user must be able to read them."""

_INSIDE = ".ssh"
_AUTHORIZED = "authorized_keys"
_CONFIG = "config"


class SshPlugin:
    """Mounts keys, and makes them."""

    def __init__(self, arguments: Ssh, job: JobFacts, *, make_keys: MakeKeys) -> None:
        """``make_keys`` is called when there is no Secret yet."""
        self._arguments = arguments
        self._job = job
        self._secret = f"{job.name}-ssh"
        self._volume = label(self._secret)
        self._private = f"id_{arguments.key_type}"
        self._public = f"{self._private}.pub"
        self._make = partial(make_keys, arguments.key_type)
        self._given = _given(arguments)

    def pod(self, pod: Object, _place: PodOfJob) -> None:
        """The Secret in all containers."""
        path = self._arguments.key_file_path
        names = (self._private, self._public, _AUTHORIZED, _CONFIG)
        secret = {
            "secretName": self._secret,
            "items": [{"key": name, "path": f"{_INSIDE}/{name}"} for name in names],
            "defaultMode": OWNER_ONLY if path == DEFAULT_PATH else READABLE,
        }
        mount = {"name": self._volume, "mountPath": path, "subPath": _INSIDE}
        pods.add_volume(pod, {"name": self._volume, "secret": secret}, mount)

    def objects(self) -> tuple[Wanted, ...]:
        """The Secret."""
        names = frozenset({self._private, self._public, _AUTHORIZED})
        secret = Wanted(
            SECRETS,
            owned(SECRETS, self._secret, self._job),
            follows={_CONFIG: client_config(self._job, port=self._arguments.port)},
            once=Once(names, self._content),
        )
        return (secret,)

    def _content(self) -> dict[str, str]:
        pair = self._given or self._make()
        # A public key given alone belongs to a user that logs in from elsewhere.
        extra = "" if self._given else self._arguments.public_key
        return {
            self._private: pair.private,
            self._public: pair.public,
            _AUTHORIZED: f"{pair.public}{extra}",
        }


def client_config(job: JobFacts, *, port: int) -> str:
    """What ``ssh <hostname>`` needs to know, for every pod of the job."""
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in job.job_tasks.tasks:
        subdomain = job.job_tasks.subdomain(task)
        for hostname in job.job_tasks.hostnames(task):
            lines += [f"Host {hostname}", f"  HostName {hostname}.{subdomain}", f"  Port {port}"]
    return "\n".join(lines) + "\n"


def _given(arguments: Ssh) -> KeyPair | None:
    if not arguments.private_key:
        return None
    if arguments.public_key:
        return KeyPair(arguments.private_key, arguments.public_key)
    try:
        return KeyPair(arguments.private_key, keys.public_of(arguments.private_key))
    except ValueError as error:
        what = f"--ssh-private-key is {error}"
        remedy = "write --ssh-public-key=TEXT too, or neither"
        raise PluginError([Problem(path_of("ssh"), what, remedy)]) from error
