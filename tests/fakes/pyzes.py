"""FAKE pyzes, at the library's boundary: functions, structures, units and codes of pyzes 0.1.3 (Level Zero Sysman).

Structures have the fields that are used; handles are numbers: card 1 has parts 100 to 199, card 2 200 to 299.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_double, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from types import ModuleType
from typing import Any

GIB = 2**30
LOST, UNSUPPORTED, FORBIDDEN = 0x70000001, 0x78000003, 0x70010000


class zes_driver_handle_t(c_void_p): ...  # noqa: N801 (the library's names, here and below)


class zes_device_handle_t(c_void_p): ...  # noqa: N801


class zes_mem_handle_t(c_void_p): ...  # noqa: N801


class zes_pwr_handle_t(c_void_p): ...  # noqa: N801


class zes_temp_handle_t(c_void_p): ...  # noqa: N801


class zes_engine_handle_t(c_void_p): ...  # noqa: N801


def _struct(name: str, /, **fields: Any) -> type[ctypes.Structure]:
    head = (
        {}
        if name in ("zes_power_energy_counter_t", "zes_engine_stats_t")
        else {"stype": c_int32, "pNext": c_void_p}
    )
    return type(name, (ctypes.Structure,), {"_fields_": list((head | fields).items())})


_CORE = _struct("ze_device_properties_t", deviceId=c_uint32, name=c_char * 256)
_PART: dict[str, Any] = {"onSubdevice": c_uint8, "type": c_int32, "location": c_int32}
STRUCTURES: list[Any] = [
    _struct("zes_device_properties_t", core=_CORE, numSubdevices=c_uint32, driverVersion=c_char * 64),
    _struct("zes_power_properties_t", **_PART),
    _struct("zes_power_ext_properties_t", domain=c_int32),
    _struct("zes_engine_properties_t", **_PART),
    _struct("zes_mem_properties_t", **_PART),
    _struct("zes_mem_state_t", free=c_uint64, size=c_uint64),
    _struct("zes_temp_properties_t", **_PART),
    _struct("zes_power_energy_counter_t", energy=c_uint64, timestamp=c_uint64),
    _struct("zes_engine_stats_t", activeTime=c_uint64, timestamp=c_uint64),
]
HANDLES: list[Any] = [
    zes_driver_handle_t, zes_device_handle_t, zes_mem_handle_t, zes_pwr_handle_t, zes_temp_handle_t,
    zes_engine_handle_t,
]  # fmt: skip


class FakePyzes(ModuleType):
    """Two Max 1550 of two stacks each, at work; `answers[(function, handle)]` is a code, or what a structure gets.

    Power domains of card 1: 101 and 102 of its stacks, 103 of its package, 104 of the card, which draws 281.13 W (as a
    Max 1550 in intel/xpumanager issue 98) and had used 5,000 J.
    """

    def __init__(self) -> None:
        super().__init__("pyzes")
        for each in (*STRUCTURES, *HANDLES):
            setattr(self, each.__name__, each)
            if each.__name__.endswith(("properties_t", "state_t")):
                setattr(self, f"ZES_STRUCTURE_TYPE_{each.__name__[4:-2].upper()}", 1)
        self.cards = [1, 2]
        self.seconds = 0
        self.answers: dict[tuple[str, int], Any] = {}

    def zesInit(self, flags: int) -> int:  # noqa: N802
        return int(self.answers.get(("zesInit", 0), 0))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("zesDriverGet", "zesDeviceGet") or name.startswith("zesDeviceEnum"):
            return lambda *arguments: self._list(name, *arguments)
        return lambda handle, reference: self._fill(name, handle.value, reference._obj)

    def _list(self, name: str, *arguments: Any) -> int:
        *of, count, handles = arguments
        card = of[0].value if of else 0
        if isinstance(code := self.answers.get((name, card)), int):
            return code
        parts = {"PowerDomains": (1, 2, 3, 4), "EngineGroups": (11, 12, 13), "MemoryModules": (21, 22, 23)}
        parts["TemperatureSensors"] = (31, 32, 33)
        of_all = {"zesDriverGet": [9], "zesDeviceGet": self.cards}
        numbers = parts.get(name.removeprefix("zesDeviceEnum"), ())
        listed = of_all[name] if name in of_all else [100 * card + number for number in numbers]
        count._obj.value = len(listed)
        for place, each in enumerate(listed if handles else ()):
            handles[place] = each
        return 0

    def _fill(self, name: str, handle: int, struct: Any) -> int:
        given = self.answers.get((name, handle), self.answers.get((name, handle // 100)))
        if isinstance(given, int):
            return given
        for key, value in {**self._usual(name, handle % 100), **(given or {})}.items():
            setattr(struct, key, value)
        if name == "zesPowerGetProperties" and struct.pNext:
            more: Any = self.zes_power_ext_properties_t
            domain = {1: 3, 2: 3, 3: 2, 4: 1}[handle % 100]
            ctypes.cast(struct.pNext, ctypes.POINTER(more)).contents.domain = domain
        return 0

    def _usual(self, name: str, part: int) -> dict[str, Any]:
        us = self.seconds * 1_000_000
        if name == "zesDeviceGetProperties":
            core = _CORE(deviceId=0x0BD5, name=b"Intel(R) Data Center GPU Max 1550")
            return {"core": core, "numSubdevices": 2, "driverVersion": b"1099.12"}
        usual: dict[str, dict[str, Any]] = {
            "zesPowerGetProperties": {"onSubdevice": part < 3},
            "zesPowerGetEnergyCounter": {"energy": 5_000_000_000 + int(281.13 * us), "timestamp": us},
            "zesEngineGetProperties": {"type": {11: 0, 12: 0, 13: 3}.get(part, 0), "onSubdevice": 1},
            "zesEngineGetActivity": {
                "activeTime": us * (part - 10) // 4,
                "timestamp": us,
            },  # a quarter, a half
            "zesMemoryGetProperties": {"location": part != 23},
            "zesMemoryGetState": {"size": 64 * GIB, "free": 63 * GIB},
            "zesTemperatureGetProperties": {"type": {31: 1, 32: 1, 33: 2}.get(part, 0)},
            "zesTemperatureGetState": {"value": {31: 35.5, 32: 38.5}.get(part, c_double(0).value)},
        }
        return usual[name]
