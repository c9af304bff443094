# CANN's own variables: without containers the host's shell has set none.
. /usr/local/Ascend/ascend-toolkit/set_env.sh
