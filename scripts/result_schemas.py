"""The JSON Schemas of what a run writes, and of what `run.py compare --format json` does, made from their records.

    .venv/bin/python scripts/result_schemas.py docs/schemas

writes them anew. A field that is added to a record ends with this command; one that changes its meaning or goes away
also with a new number in `SCHEMA` of run_benchmarks/results/round_result.py, and a fixture of the one before; of a
comparison, which nothing reads back, in `SCHEMA` of run_benchmarks/comparison/records.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from run_benchmarks.comparison import records as comparison
from run_benchmarks.results.round_result import SCHEMA, Observation, RoundResult
from run_benchmarks.results.summary import Run

RECORDS: Mapping[str, type] = {
    "result": RoundResult,
    "round": Observation,
    "summary": Run,
    "comparison": comparison.Comparison,
}
OTHER_NUMBERS = {"comparison": comparison.SCHEMA}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Written(GenerateJsonSchema):
    """What is written has every field, one with a default too."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Always."""
        return True


def schema_of(name: str) -> dict[str, Any]:
    """The schema of `<name>.json`, in its present version."""
    number = OTHER_NUMBERS.get(name, SCHEMA)
    made = TypeAdapter(RECORDS[name]).json_schema(mode="serialization", schema_generator=Written)
    for properties in (each.get("properties", {}) for each in (made, *made.get("$defs", {}).values())):
        if "schema" in properties:
            properties["schema"] = {"const": number, "title": "Schema"}
    return {"$schema": DIALECT, **made, "title": f"{name}.json of FlagPerf, schema {number}"}


def main(arguments: Sequence[str]) -> int:
    """Write the schemas into the folder that is named."""
    (folder,) = map(Path, arguments)
    for name in RECORDS:
        path = folder / f"{name}.schema.json"
        path.write_text(json.dumps(schema_of(name), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
