"""The dashboard, held against Grafana's own published model of one."""

from __future__ import annotations

import json
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.run_benchmarks.metrics.test_prometheus import DASHBOARD, PANELS


def unread(written: Any, read: Any, place: str = "") -> list[str]:
    """What of `written` the model does not have, or has otherwise."""
    if isinstance(written, dict) and isinstance(read, dict):
        return [
            line
            for name, value in written.items()
            for line in (
                unread(value, read[name], f"{place}.{name}") if name in read else [f"{place}.{name}"]
            )
        ]
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        return [
            line
            for at, pair in enumerate(zip(written, read, strict=True))
            for line in unread(*pair, f"{place}[{at}]")
        ]
    return [] if written == read else [place]


def test_grafanas_model_knows_all_of_it() -> None:
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(DASHBOARD)))
    assert unread(DASHBOARD, read) == []


def test_a_field_that_grafana_does_not_know_is_seen() -> None:
    other = {**DASHBOARD, "panels": [{**PANELS[0], "titel": "?"}], "refesh": "5s"}
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(other)))
    assert unread(other, read) == [".refesh", ".panels[0].titel"] or set(unread(other, read)) == {
        ".refesh",
        ".panels[0].titel",
    }


def test_panels_have_a_place_a_title_and_a_description_each() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells), "panels overlap"
    assert all(x < 24 for x, _ in cells)
    assert all(panel["title"] and panel["description"] for panel in PANELS)
    assert all(
        target["datasource"]["uid"] == "${datasource}" for panel in PANELS for target in panel["targets"]
    )
