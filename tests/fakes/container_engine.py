"""FAKE container engine: a command with a store of its own for each host, for what needs several hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from run_benchmarks.transports.base import Completed
from run_benchmarks.transports.local import LocalTransport

# A FAKE container engine at the tool's boundary: its store is a folder, an image a file of which the first
# line is the ID; the registry is a folder too. `fail-<verb>` in the store makes a verb fail with its text.
FAKE_ENGINE = """\
#!/bin/sh
printf '%s\\n' "$*" >> "$STORE/asked"
for last; do :; done
file() { echo "$STORE/image-$(echo "$1" | tr /: __)"; }
wait_a_while() { [ ! -f "$STORE/delay" ] || sleep "$(cat "$STORE/delay")"; }
archive() {
    saved="$(mktemp -d "$STORE/saved.XXXXXX")"
    printf '[{"RepoTags":["%s"]}]' "$1" > "$saved/manifest.json"
    ln "$(file "$1")" "$saved/image"
    tar -c --format=ustar -C "$saved" image manifest.json
    rm -r "$saved"
}
if [ -f "$STORE/fail-$1" ]; then
    [ "$1" != save ] || archive "$last" | head -c 1000  # it breaks off in the middle
    cat "$STORE/fail-$1" >&2
    exit 1
fi
case "$1" in
image)
    case "$*" in *Size*) echo 100; exit ;; esac
    head -n 1 "$(file "$last")" 2>/dev/null || { echo "Error: No such image: $last" >&2; exit 1; } ;;
build)
    while [ "$1" != --tag ]; do shift; done
    echo "building $2"
    wait_a_while
    { echo "sha256:built-on-$NAME"; head -c "${SIZE:-100}" /dev/zero; } > "$(file "$2")" ;;
save)
    wait_a_while
    if [ "$2" = --output ]; then archive "$4" > "$3"; else archive "$2"; fi ;;
commit)
    { echo "sha256:committed-on-$NAME"; cat /proc/sys/kernel/random/uuid; } > "$(file "$last")" ;;
load)
    mkdir -p "$STORE/loading"
    tar -x -C "$STORE/loading" &&
        mv "$STORE/loading/image" "$(file "$(cut -d'"' -f4 "$STORE/loading/manifest.json")")" ;;
push)
    wait_a_while
    cp "$(file "$2")" "$REGISTRY/$(basename "$(file "$2")")" ;;
pull)
    wait_a_while
    cp "$REGISTRY/$(basename "$(file "$2")")" "$STORE/" ;;
run)
    cat "$STORE/software" ;;
esac
"""


class FakeEngineHost(LocalTransport):
    """A host with a store of its own of the FAKE engine; commands are real processes on this machine."""

    def __init__(self, name: str, folder: Path, *, size: int = 100) -> None:
        super().__init__(name)
        self.store = folder / name
        self.store.mkdir()
        registry = folder / "registry"
        registry.mkdir(exist_ok=True)
        self._env = ("env", f"NAME={name}", f"STORE={self.store}", f"REGISTRY={registry}", f"SIZE={size}")

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        done = await super().run((*self._env, *argv), **options)
        return Completed(done.host, tuple(argv), done.returncode, done.stdout, done.stderr)

    def asked(self, verb: str) -> list[str]:
        """What the engine was asked to do by this verb."""
        path = self.store / "asked"
        lines = path.read_text().splitlines() if path.is_file() else []
        return [line for line in lines if line.split()[0] == verb]

    def fail(self, verb: str, text: str) -> None:
        """Let this verb fail from now on."""
        (self.store / f"fail-{verb}").write_text(text + "\n")

    def delay(self, seconds: float) -> None:
        """Let building, saving, pushing and pulling take this long."""
        (self.store / "delay").write_text(str(seconds))

    def put_image(self, tag: str, image_id: str) -> None:
        """Have an image."""
        (self.store / f"image-{tag.replace('/', '_').replace(':', '_')}").write_text(f"{image_id}\n")


def fake_engine(folder: Path) -> str:
    """The FAKE engine's command."""
    path = folder / "engine"
    path.write_text(FAKE_ENGINE)
    path.chmod(0o755)
    return str(path)
