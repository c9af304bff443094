"""FAKE libdcmi.so, at the library's boundary: its functions, units and codes are those of dcmi_interface_api.h."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

NPU, MCU = 0, 1


def _put(reference: Any, **values: Any) -> None:
    """Write into what `ctypes.byref` points to."""
    target = reference._obj
    for name, value in values.items():
        setattr(target, name, value)


class FakeDcmi:
    """Cards with their units, {card: [NPU, MCU]}; `answers[(function, card, unit)]` is a value or a negative code."""

    def __init__(self, cards: dict[int, list[int]]) -> None:
        self.cards = cards
        self.answers: dict[tuple[str, int, int], int] = {}
        self.started = 0  # what dcmi_init answers

    def __getattr__(self, name: str) -> Callable[..., int]:
        whole: dict[str, Callable[..., int]] = {
            "dcmi_init": self._dcmi_init,
            "dcmi_get_card_list": self._dcmi_get_card_list,
            "dcmi_get_device_num_in_card": self._dcmi_get_device_num_in_card,
            "dcmi_get_driver_version": self._dcmi_get_driver_version,
        }
        return whole.get(name) or (lambda card, unit, *rest: self._of_unit(name, card, unit, *rest))

    def _dcmi_init(self) -> int:
        return self.started

    def _dcmi_get_card_list(self, count: Any, numbers: Any, length: int) -> int:
        assert length >= len(self.cards)
        _put(count, value=len(self.cards))
        numbers[: len(self.cards)] = list(self.cards)
        return 0

    def _dcmi_get_device_num_in_card(self, card: int, count: Any) -> int:
        _put(count, value=len(self.cards[card]))
        return 0

    def _dcmi_get_driver_version(self, text: Any, length: ctypes.c_uint) -> int:
        assert length.value == len(text)
        text.value = b"25.5.1"
        return 0

    def _of_unit(self, name: str, card: int, unit: int, *rest: Any) -> int:
        """Values of a 910B2, driver 25.5.1 (gpustack/runtime, detect_output_ascend_910b2.json); the load is made up."""
        answer = self.answers.get((name, card, unit))
        if answer is not None and answer < 0:
            return answer
        *kind, reference = rest
        values: dict[str, dict[str, Any]] = {
            "dcmi_get_device_type": {"value": self.cards[card][unit]},
            "dcmi_get_device_power_info": {"value": 1013},
            "dcmi_get_device_temperature": {"value": 47},
            "dcmi_get_device_health": {"value": 0},
            "dcmi_get_device_utilization_rate": {"value": 93},
            "dcmi_get_device_hbm_info": {"memory_size": 65536, "memory_usage": 3432, "temp": 47},
            "dcmi_get_device_chip_info_v2": {
                "chip_type": b"Ascend", "chip_name": b"910B2", "chip_ver": b"V1", "aicore_cnt": 24,
            },
        }  # fmt: skip
        assert kind == ([2] if name == "dcmi_get_device_utilization_rate" else [])
        _put(reference, **({"value": answer} if answer is not None else values[name]))
        return 0
