# CANN's own variables. The image has them, but the ranks' PYTHONPATH replaces the one by which CANN finds its compiler.
. /usr/local/Ascend/ascend-toolkit/set_env.sh
