# DTK's libraries: without them `ImportError: libgalaxyhip.so.5` (flagos-ai/FlagTree issue 618).
if [ -f /opt/dtk/env.sh ]; then . /opt/dtk/env.sh; fi

# As HYGON-AI/Megatron-LM-das (requirements/env.sh) and FlagPerf's case for DCU set it.
export HSA_FORCE_FINE_GRAIN_PCIE=1
