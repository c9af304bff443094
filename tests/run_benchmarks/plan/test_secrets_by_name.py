"""What is hidden by the name that it is assigned to, and which names are never hidden themselves."""

from __future__ import annotations

from run_benchmarks.plan.secrets import Secrets, secrets_of


def test_what_is_assigned_to_a_marked_name_is_hidden_as_to_one_that_speaks_for_itself() -> None:
    secrets = secrets_of(["SITE"], {"ACCE_CONTAINER_OPT": "-e SITE=1234"})
    texts = ("SITE=1234", "SITE: 1234", '{"SITE": "1234"}', "-e 'SITE=1234'", "OFFSITE=1234 at step 1234")
    shown = ("SITE=***", "SITE: ***", '{"SITE": "***"}', "-e 'SITE=***'", texts[-1])
    assert secrets.hide_in(texts) == shown


def test_a_value_that_names_a_figure_or_a_stage_takes_none_away() -> None:
    secrets = Secrets(held=frozenset({"energy", "p_train", "collect", "avg_power"}))
    result = {"figures": {"energy": 1, "p_train": 2, "avg_power": 3}, "times": {"collect": 4}}
    assert secrets.hide_in(result) is result
    assert secrets.hide("DB_PASS=energy") == "DB_PASS=***"
