# Real events, which the ranks synchronise and are timed by (vLLM-Kunlun, user_guide/configuration/env_vars.md).
unset XPU_DUMMY_EVENT
