"""What to do about what a container engine says; {host}: where it said so."""

from __future__ import annotations

IMAGE_GONE = "start again, which brings the image anew: somebody has removed it from {host} meanwhile"
PAUSED = (
    "somebody has paused its container; see on {host} when: `docker events --since 1h --until 0s "
    "--filter event=pause`; who asked is not kept by the engine: `last`, cron's or a batch system's log"
)
# What Podman says -> what to do about it.
PODMAN_REMEDIES = {
    "container-init binary not found": "install catatonit on {host}, which Podman's --init needs",
    'could not find "catatonit"': "install catatonit on {host}, which Podman's --init needs",
    "newuidmap": "install uidmap on {host}, which Podman needs where it does not run as root",
    "no subuid ranges": "give the user IDs on {host}: `sudo usermod --add-subuids 100000-165535 "
    "--add-subgids 100000-165535 $USER`, then `podman system migrate`",
    "image not known": IMAGE_GONE,
    # it says no more of one that is paused
    "can only create exec sessions on running": "see on {host} whether its container is paused, and when: `podman ps "
    "--all --filter status=paused`, `podman events --since 1h --stream=false --filter event=pause`",
    "statfs /dev/mqueue": "mount it on {host}: `sudo mkdir -p /dev/mqueue && sudo mount -t mqueue mqueue /dev/mqueue`",
}
