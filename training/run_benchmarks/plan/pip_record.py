"""The PIP_* settings of `test_conf.py`, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic.dataclasses import dataclass as model

from run_benchmarks.plan import values


@model(frozen=True, config=values.IN_CAPITALS)
class PipConf:
    """`test_conf.py`: where pip's settings come from; empty for nothing given."""

    pip_from_host: values.Flag = False
    pip_config_file: values.Text = ""
    pip_source: values.IndexUrl = ""
    pip_ca_file: values.Text = ""
    pip_wheel_dirs: values.Texts = ()


@dataclass(frozen=True)
class PipSettings:
    """How pip reaches packages while an image is built. Values may hold secrets: never log `options`.

    options: pip's own option names -> values, as in the [global] section of a pip.conf.
    ca_file, wheel_dirs: paths on the controller, handed into the build.
    """

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: Path | None = None
    wheel_dirs: tuple[Path, ...] = ()
