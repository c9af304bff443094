"""Tables drawn with bars, as vendors' tools print their devices."""

from __future__ import annotations

import pytest

from utils.monitors.table import device_rows

TEXT = """made up  1.0
+-----------+--------+
| Acme      | 1.0    |
|-----------+--------|
| ID  Name  | Bus    |
| Temp      | Memory |
|===========+========|
| 0   A1    | 07:00  |
| 33C       | 1/2    |
+-----------+--------+
| 1   A1    | 08:00  |
| N/A       |        |
+-----------+--------+

| no table |
"""


def test_cells_are_told_by_their_heading() -> None:
    first, second = device_rows(TEXT, "Bus")
    assert (first.cell(0, r"\bID\b"), first.cell(1, "Temp"), first.cell(1, "Memory")) == (
        "0   A1",
        "33C",
        "1/2",
    )
    assert (second.cell(0, "Bus"), second.cell(1, "Temp|Heat"), second.cell(1, "Memory")) == (
        "08:00",
        "N/A",
        "",
    )


def test_a_cell_that_a_line_lacks_is_empty() -> None:
    [first, _] = device_rows(TEXT.replace("| 33C       | 1/2    |", "| 33C |"), "Bus")
    assert first.cell(1, "Memory") == ""


def test_a_table_may_end_with_the_text_and_be_indented() -> None:
    text = "\n".join(f"  {line}" for line in TEXT.partition("\n\n")[0].splitlines())
    assert device_rows(text, "Bus") == device_rows(TEXT, "Bus")


def test_a_table_of_no_devices_has_none() -> None:
    assert device_rows(TEXT.partition("| 0 ")[0], "Bus") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no table headed 'Bus'"),
        (TEXT.replace("| N/A       |        |\n", ""), "ends within a device: 1   A1 | 08:00"),
        (TEXT.replace("| 1   A1", "device 1 is lost\n| 1   A1"), "none of the table's: device 1 is lost"),
    ],
)
def test_what_is_no_such_table_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("|", r"\|")):
        device_rows(text, "Bus")


def test_a_heading_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no column is headed 'Power'"):
        device_rows(TEXT, "Bus")[0].cell(1, "Power")
