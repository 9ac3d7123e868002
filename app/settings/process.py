"""What can be set on every process, from the environment and flags to plain values.

Every option is a flag with Volcano's name where Volcano has it, and a variable ``PUMICE_<NAME>``.
Times are seconds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.config import JsonDict
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.model.names import label_problems, subdomain_problems


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
    return path


def address_of(text: str) -> tuple[str, int]:
    """Host and port of ``host:port`` (``:8081``: every address); ValueError when it is none."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is no address:port")
    return host.strip("[]") or "0.0.0.0", int(port)


def _address(text: str) -> str:
    if text:
        address_of(text)
    return text


def listed(text: str) -> tuple[str, ...]:
    """The names of a list separated by commas, in its order."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _with_names(text: str) -> str:
    if not listed(text):
        raise ValueError("there is no name in it")
    return text


def object_name(text: str) -> str:
    """A name that a Lease, a Secret and the like can have; ValueError for any other."""
    return _named(text, subdomain_problems(text))


def label_name(text: str) -> str:
    """A name that a namespace or a Service can have; ValueError for any other."""
    return _named(text, label_problems(text))


def _named(text: str, problems: Sequence[str]) -> str:
    if problems:
        raise ValueError(f"{text!r} is no name: {', '.join(problems)}")
    return text


def _in_capitals(level: object) -> object:
    return level.upper() if isinstance(level, str) else level


ExistingFile = Annotated[Path, AfterValidator(_existing)]
Address = Annotated[str, AfterValidator(_address)]
"""``host:port``, or empty."""
Names = Annotated[str, AfterValidator(_with_names)]
"""At least one name, separated by commas."""
ObjectName = Annotated[str, AfterValidator(object_name)]
LabelName = Annotated[str, AfterValidator(label_name)]
LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_in_capitals)]


FLAGS: Final = "flags"
"""Beside a setting: its flags by other names."""
TOLD: Final = "told"
"""Beside a setting: what is told of its default."""


def option(
    default: Any = ..., *, text: str, told: str = "", flags: tuple[str, ...] = (), **bounds: Any
) -> Any:
    """A setting; the command line and the documents tell of it in the words of ``text``.

    ``told`` stands for the default where that is told in words. ``flags`` are Volcano's names for
    it. ``bounds`` are pydantic's.
    """
    noted: JsonDict = {TOLD: told, FLAGS: list(flags)}
    return Field(default=default, description=text, json_schema_extra=noted, **bounds)


class ProcessSettings(BaseSettings):
    """What can be set on every process."""

    model_config = SettingsConfigDict(
        env_prefix="PUMICE_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    kubeconfig: ExistingFile | None = option(
        None, text="Path of a kubeconfig; in a pod its service account"
    )
    scheduler_name: Names = option(
        "volcano",
        text="Scheduler names that are ours, comma separated; the first is that of jobs which "
        "name none",
    )
    kube_api_qps: float = option(2000.0, gt=0, text="Requests to the API server a second")
    kube_api_burst: int = option(2000, gt=0, text="Requests to the API server at once")
    leader_elect: bool = option(True, text="Work only while leading")
    leader_elect_resource_name: ObjectName = option(text="Name of the Lease")
    leader_elect_resource_namespace: LabelName = option(
        "pumice-system", text="Namespace of the Lease"
    )
    log_level: LogLevel = option("INFO", text="DEBUG, INFO, WARNING or ERROR")
    log_format: Literal["text", "json"] = option("text", text="text or json")

    def schedulers(self) -> tuple[str, ...]:
        """The scheduler names that are ours, in the order given."""
        return listed(self.scheduler_name)
