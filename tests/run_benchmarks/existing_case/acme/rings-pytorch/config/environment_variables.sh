# =================================================
# Export variables
# =================================================

export RINGS_CACHE="/tmp"
if [[ "$PYTORCH_BUILD_VERSION" == 1.8* ]]; then
    export RINGS_OLD=1
fi
