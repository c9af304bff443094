"""What a setting may hold: the types of the models' fields, each with an example for who got it wrong.

A validator raises UnfitError, which says why the value cannot be taken and what would be right. What pydantic
itself refuses is put into such words by `reader`.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from run_benchmarks.plan.command_words import check_command, check_numbers, check_options
from run_benchmarks.plan.energy_factors import check_price
from run_benchmarks.plan.host_ranges import LONGEST_HOST, expand
from run_benchmarks.plan.problems import UnfitError


def _text(text: str) -> str:
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
        raise UnfitError("holds a line break or another control character", "remove it")
    return text.strip()


def _matching(pattern: str, message: str, remedy: str) -> AfterValidator:
    """A validator of texts; an empty one passes, it stands for nothing given where that is allowed."""

    def check(text: str) -> str:
        if text and not re.fullmatch(pattern, text, re.ASCII):
            raise UnfitError(message, remedy)
        return text

    return AfterValidator(check)


def _port(value: Any) -> int:
    """As a number or, as FlagPerf's own files write it, as text."""
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    if type(number) is not int or not 1 <= number <= 65535:
        raise UnfitError("is no port", 'write a port number from 1 to 65535, e.g. "22"')
    return number


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        remedy = 'write "127.0.0.1" for this machine alone, "0.0.0.0" or "::" for all of its addresses, or one of them'
        raise UnfitError("is no IP address", remedy) from None


def _shell_words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, str):
        raise UnfitError("has the wrong type: it is no text", 'write text, e.g. " --gpus all"')
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        message = f"cannot be split into options: {error}"
        raise UnfitError(message, "close the quotation marks in it") from None


def _engine_options(words: tuple[str, ...]) -> tuple[str, ...]:
    check_options(words)
    return words


def _vendors_options(words: tuple[str, ...]) -> tuple[str, ...]:
    check_numbers(words)
    return _engine_options(words)


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        why = "starts with ~, which hosts do not know" if path.startswith("~") else "is relative"
        message = f"{why}; a path on the hosts must be absolute"
        raise UnfitError(message, "write it in full, starting with /, e.g. /data/flagperf")
    return path if path == "/" else path.rstrip("/")


def _not_empty(text: str) -> str:
    if not text:
        raise UnfitError("is empty", "write a name, or remove the line")
    return text


def _device_names(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or not all(names):
        message = "names no device: any device would pass for this chip, and its peak be taken for that one's"
        raise UnfitError(
            message, "write parts of the lines that parse_device_list returns for this chip alone"
        )
    return names


def _options(value: Any) -> Any:
    """As words, or as a dict: an option as a shell reads it -> why containers need it."""
    if not isinstance(value, dict):
        return value
    for option, reason in value.items():
        if not isinstance(reason, str) or not reason.strip():
            raise UnfitError(f"gives no reason for {option}", "write why containers need it, and for what")
    return tuple(word for option in value for word in _option(option))


def _option(option: Any) -> tuple[str, ...]:
    try:
        return _vendors_options(_shell_words(option))
    except UnfitError as error:
        raise UnfitError(f"{option}: {error.message}", error.remedy) from None


def _sources(value: Any) -> Any:
    return {"": value} if isinstance(value, str) else value


def _peak(flops: float) -> float:
    if flops < LEAST_PEAK:
        remedy = "write FLOP/s, e.g. 312e12 for 312 TFLOP/s; None where it is not known"
        raise UnfitError(f"is below {LEAST_PEAK:g} FLOP/s: is its unit right?", remedy)
    return flops


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _without_none(value: Any) -> Any:
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def host_name(host: str) -> str:
    """A host's name or address, as it may stand in a list of hosts; UnfitError where it is none."""
    if host.startswith("@"):
        message = "is a group of ClusterShell's, which are not looked up"
        raise UnfitError(message, 'write its hosts, e.g. "node[001-512]"')
    if "@" in host:
        remedy = f"write {host.rpartition('@')[2]!r} here and the user as SSH_USER, or into your ssh config"
        raise UnfitError("is not a host but user@host", remedy)
    if re.fullmatch(r"[^:\s]+:\d+", host):
        remedy = f"write {host.partition(':')[0]!r} here and the port as SSH_PORT"
        raise UnfitError("has a port in it", remedy)
    if re.fullmatch(r"[\d.]+", host) or ":" in host:
        _check_address(host)
    elif not re.fullmatch(r"[A-Za-z0-9_]([\w.-]{0,251}[A-Za-z0-9_.])?", host, re.ASCII):
        remedy = 'write one name or address an item, e.g. "10.1.2.2" or "node1"'
        raise UnfitError("cannot be the name of a host", remedy)
    return host


def _entry(entry: str) -> str:
    """Names or addresses, with ranges in them perhaps; each host that it stands for is looked at."""
    try:
        hosts = expand(entry)
    except ValueError as error:
        raise UnfitError(str(error), 'write ranges as in "node[001-512]" or "10.1.2.[3-6,9]"') from None
    for host in hosts:
        try:
            if len(host_name(host)) > LONGEST_HOST:
                raise UnfitError(
                    f"has more than {LONGEST_HOST} characters", "write its address, or a short alias"
                )
        except UnfitError as error:
            message = error.message if host == entry else f"stands for {host!r}, which {error.message}"
            raise UnfitError(message, error.remedy) from None
    return entry


def _check_address(host: str) -> None:
    try:
        ipaddress.ip_address(host if re.fullmatch(_ADDRESS, host, re.ASCII) else "")
    except ValueError:
        raise UnfitError("is not an IP address", "correct it: four numbers from 0 to 255, or IPv6") from None


# A field's name in a file is its own in capitals, unless it has an alias.
IN_CAPITALS = ConfigDict(alias_generator=str.upper, populate_by_name=True)
# A core of any processor in use has more; what is less is a number of TFLOP/s.
LEAST_PEAK = 1e9
_ADDRESS = (
    r"[0-9A-Fa-f:.]+(%[\w.-]{1,15})?"  # behind % stands an interface, of which ipaddress takes any text
)
_NAME = r"[A-Za-z_]\w*"
_REGISTRY = r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:\d+)?(/[a-z0-9._/-]+)?"

Text = Annotated[str, AfterValidator(_text), Field(examples=['"..."'])]
Texts = Annotated[tuple[Text, ...], Field(examples=['["...", "..."]'])]
Flag = Annotated[StrictBool, Field(examples=["True"])]  # the text "False" would count as true in Python
Count = Annotated[StrictInt, Field(ge=0, le=100, examples=["1"])]
Whole = Annotated[StrictInt, Field(ge=1, examples=["1"])]
CaseSize = Annotated[Whole, Field(le=999_999)]  # what a case's key can say has six digits
Positive = Annotated[StrictFloat, Field(gt=0, allow_inf_nan=False, examples=["10"])]
NotNegative = Annotated[StrictFloat, Field(ge=0, allow_inf_nan=False, examples=["10"])]
# Times: above a year stands a slip, or more than the clocks and commands of some hosts take.
Hours = Annotated[Positive, Field(le=10_000)]
Seconds = Annotated[Positive, Field(le=36_000_000)]
SecondsOrZero = Annotated[NotNegative, Field(le=36_000_000)]
IdleSeconds = Annotated[NotNegative, Field(le=600)]
Port = Annotated[int, BeforeValidator(_port)]
# Of this machine; no name, for what that leads to may change.
Address = Annotated[Text, AfterValidator(_address)]
EngineOptions = Annotated[tuple[str, ...], BeforeValidator(_shell_words), AfterValidator(_engine_options)]
# What is started without a shell.
Command = Annotated[Texts, AfterValidator(check_command), Field(examples=['["nvidia-smi", "--list-gpus"]'])]
# A path on the hosts or in the containers; the controller's `~` means nothing there.
AbsolutePath = Annotated[Text, AfterValidator(_absolute), Field(examples=['"/data/flagperf"'])]
OptionalPath = Annotated[Text, AfterValidator(lambda path: _absolute(path) if path else "")]  # "": none
# One component of a path: a vendor, a model, a framework.
PathName = Annotated[
    Text, AfterValidator(_not_empty),
    _matching(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", "cannot be the name of a folder here",
              "use letters, digits, and . _ + - within, 100 at most"),
    Field(examples=['"bert"']),
]  # fmt: skip
EnvironmentName = Annotated[
    Text,
    _matching(_NAME, "cannot be the name of an environment variable",
              'use A-Z, 0-9 and _, e.g. "CUDA_VISIBLE_DEVICES"'),
    Field(examples=['"CUDA_VISIBLE_DEVICES"']),
]  # fmt: skip
EnvironmentNames = Annotated[
    tuple[Annotated[EnvironmentName, AfterValidator(_not_empty)], ...], Field(examples=['["SITE_LICENSE"]'])
]
TextDict = Annotated[
    dict[Annotated[EnvironmentName, AfterValidator(_not_empty)], Text],
    Field(examples=['{"BASE_IMAGE": "python:3.11-slim"}']),
]
# As container engines read it.
MemorySize = Annotated[
    Text,
    _matching(r"0*[1-9]\d*[bkmgBKMG]?", "is not a size",
              'write a whole number and a unit (b, k, m or g), e.g. "32G"'),
    Field(examples=["'32G'"]),
]  # fmt: skip
Engine = Annotated[
    Text,
    _matching(r"docker|podman|/\S+", "is not a container engine",
              'write "docker", "podman", or the absolute path of either'),
]  # fmt: skip
Program = Annotated[
    Text,
    _matching(r"/.+|[A-Za-z0-9][\w.+-]*", "is no program",
              'write a name such as "python3", or an absolute path on the hosts'),
]  # fmt: skip
Registry = Annotated[
    Text,
    _matching(_REGISTRY, "is not the address of a registry",
              'write host[:port][/path] without https:// and in small letters, e.g. "registry.local:5000"'),
    AfterValidator(lambda registry: registry.rstrip("/")),
]  # fmt: skip
IndexUrl = Annotated[
    Text,
    _matching(r"(https?|file)://[^ ]*", "is not the URL of a package index",
              'write e.g. "https://pypi.org/simple"'),
]  # fmt: skip
User = Annotated[
    Text,
    _matching(r"[A-Za-z0-9_][^\s:/@]*", "cannot be a user's name",
              'write the user who logs in on the hosts, e.g. "alice"'),
]  # fmt: skip
# An entry of HOSTS: see `host_ranges.expand`.
HostEntry = Annotated[Text, AfterValidator(_entry), Field(examples=['"10.1.2.2"'])]
Hosts = Annotated[tuple[HostEntry, ...], Field(examples=['["10.1.2.2", "10.1.2.3"]'])]
# HOSTS is one or the other: a list, or a dict with a list for each vendor.
HostList = Annotated[Hosts, BeforeValidator(lambda hosts: () if isinstance(hosts, dict) else hosts)]
HostGroups = Annotated[
    dict[PathName, Hosts], BeforeValidator(lambda hosts: hosts if isinstance(hosts, dict) else {})
]
# Vendor -> its settings, which are read by themselves.
Sections = Annotated[
    dict[str, dict[str, Any]],
    Field(examples=['VENDORS = {"acme": {"ACCE_CONTAINER_OPT": " --device=/dev/acme"}}']),
]
# An amount with its currency.
Price = Annotated[tuple[float, str], BeforeValidator(check_price)]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)]
TestType = Annotated[Literal["default", "customized"], BeforeValidator(_lower)]
Runtime = Annotated[Literal["docker", "process", "apptainer", "pyxis"], BeforeValidator(_lower)]
Distribution = Annotated[Literal["build", "stream", "registry"], BeforeValidator(_lower)]
Dtype = Annotated[
    Text,
    _matching("bf16|fp16|tf32|fp32|fp64|fp8|int8", "is no dtype of a peak",
              "use bf16, fp16, tf32, fp32, fp64, fp8 or int8"),
]  # fmt: skip
Peaks = Annotated[dict[Dtype, Annotated[Positive, AfterValidator(_peak)]], BeforeValidator(_without_none)]
DeviceNames = Annotated[Texts, AfterValidator(_device_names)]
# An argv; a dict has options in place of the words, each with its reason.
Options = Annotated[Texts, BeforeValidator(_options), AfterValidator(_vendors_options)]
# A field of a chip -> where its value comes from; one text is that of all.
Sources = Annotated[
    dict[str, Text], BeforeValidator(_sources), Field(examples=['"Acme A1 data sheet, dense"'])
]
Plugins = Annotated[
    dict[Text, Annotated[Text, _matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "is no Python module",
                                         'write what Python imports, e.g. "torch_npu"')]],
    Field(examples=['{"pytorch": "torch_npu"}']),
]  # fmt: skip
Links = Annotated[dict[Literal["chip", "host"], Positive], BeforeValidator(_without_none)]
