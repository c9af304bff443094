"""Asking one GPU by NVML: what it does not have is None, what it answers in place of a value is its error."""

from __future__ import annotations

import struct
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

MW_PER_W, KIB = 1000, 2**10
ALL_LINKS = 0xFFFFFFFF


class Field(NamedTuple):
    """A field value of NVML: the reading that it is, or is added to, times `scale`."""

    reading: str
    name: str
    scale: float = 1
    scope: int = 0


# Asked all at once.
FIELDS = (
    Field("power_w", "NVML_FI_DEV_POWER_AVERAGE", 1 / MW_PER_W),
    Field("power_instant_w", "NVML_FI_DEV_POWER_INSTANT", 1 / MW_PER_W),
    Field("memory_temperature_c", "NVML_FI_DEV_MEMORY_TEMP"),
    Field("ecc_corrected", "NVML_FI_DEV_ECC_SBE_VOL_TOTAL"),
    Field("ecc_uncorrected", "NVML_FI_DEV_ECC_DBE_VOL_TOTAL"),
    Field("remapped_rows", "NVML_FI_DEV_REMAPPED_COR"),
    Field("remapped_rows", "NVML_FI_DEV_REMAPPED_UNC"),
    Field("nvlink_sent_bytes", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", KIB, ALL_LINKS),
    Field("nvlink_received_bytes", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", KIB, ALL_LINKS),
)
# nvmlFieldValue_t as it lies in memory: field, scope, two times, the type of the value, what became of it, the value;
# a value's form by its type. Read so, for an attribute of one of pynvml's structures costs as much as a query.
FIELD_VALUE = struct.Struct("=IIqqII8s")
VALUE_FORMS = [struct.Struct(f"={letter}") for letter in "dIQQqiH"]


@lru_cache(maxsize=1)
def _numbered(nvml: ModuleType) -> tuple[list[Field], list[tuple[int, int]]]:
    """The fields that this pynvml has, an older one lacks some, and how they are asked for."""
    there = [field for field in FIELDS if hasattr(nvml, field.name)]
    return there, [(getattr(nvml, field.name), field.scope) for field in there]


class Device:
    """One GPU at one moment, by its NVML index: a GPU that was reset gets a new handle."""

    def __init__(self, nvml: ModuleType, index: int) -> None:
        self._nvml = nvml
        self._errors: dict[str, str] = {}  # each with the first query that it was the answer to
        self._handle = self.call("nvmlDeviceGetHandleByIndex", index)

    @property
    def error(self) -> str:
        """What it answered in place of values, each once."""
        return "; ".join(f"{name}: {text}" for text, name in self._errors.items())

    @property
    def is_there(self) -> bool:
        """Whether there is any sense in asking."""
        return self._handle is not None

    def ask(self, name: str, *arguments: Any) -> Any:
        """The answer to a query about it; None where GPU, driver or pynvml do not have it, or it fails."""
        return self.call(name, self._handle, *arguments)

    def call(self, name: str, *arguments: Any) -> Any:
        """The same of a query that names no GPU."""
        query = getattr(self._nvml, name, None)
        try:
            return query and query(*arguments)
        except self._nvml.NVMLError as error:
            self._note(name, error)
            return None

    def fields(self) -> dict[str, float]:
        """The readings that it has of FIELDS."""
        nvml, readings = self._nvml, {}
        there, numbers = _numbered(nvml)
        answers = bytes(self.ask("nvmlDeviceGetFieldValues", numbers) or b"")
        for field, (*_, kind, status, raw) in zip(there, FIELD_VALUE.iter_unpack(answers)):  # noqa: B905 - old Pythons
            if status != nvml.NVML_SUCCESS:
                self._note(field.name, nvml.NVMLError(status))
            elif kind < len(VALUE_FORMS):
                (value,) = VALUE_FORMS[kind].unpack_from(raw)
                readings[field.reading] = readings.get(field.reading, 0) + value * field.scale
        return readings

    def _note(self, name: str, error: Any) -> None:
        """Keep an error, unless it only says that there is no such thing here."""
        nvml = self._nvml
        absent = (
            nvml.NVML_ERROR_NOT_SUPPORTED,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            nvml.NVML_ERROR_INVALID_ARGUMENT,
            nvml.NVML_ERROR_NO_PERMISSION,
        )
        if error.value not in absent:
            self._errors.setdefault(str(error), name)
