#!/bin/bash
# The first process of a lab host. A shell is the right thing here: it is mounts and two programs.
#
#   host_init.sh NAME FOLDER NAMESPACE        in the environment: CGROUP_FILES, SHARES, IMAGES, DOCKERD_OPTIONS
#
# Outside first: enter the host's control groups and namespaces. Then, inside, come back here as process 1: make the
# host's own tree, leave this machine's behind, start the engine, and see to it that there is an sshd.
set -euo pipefail
name=$1 folder=$2 namespace=$3

if [ -z "${INSIDE:-}" ]; then
  for file in $CGROUP_FILES; do echo 0 >"$file"; done
  # Not "ip netns exec": it mounts a new /sys, and dockerd then finds no control groups.
  # --kill-child: when the outer process is killed, process 1 is, and with it everything inside.
  INSIDE=yes exec nsenter --net="$namespace" \
    unshare --mount --uts --ipc --pid --fork --kill-child --propagation private bash "$0" "$@"
fi

mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
cd "$folder/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount --rbind /dev dev
# Shared memory of its own: ranks on different hosts must not meet there.
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=0755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p var/lib/docker var/lib/containers run/sshd run/lock run/old
# The engines' layers are overlays themselves and cannot lie on one.
mount --bind "$folder/docker" var/lib/docker
mount --bind "$folder/containers" var/lib/containers
# Podman shows it to every container that shares the host's IPC namespace.
mkdir -p dev/mqueue
mount -t mqueue mqueue dev/mqueue

bind_read_only() {
  mkdir -p "$2"
  mount --bind "$1" "$2"
  mount -o remount,bind,ro "$2"
}
while IFS=$'\t' read -r source target; do
  [ -z "$source" ] || bind_read_only "$source" "./$target"
done <<<"$SHARES"
while IFS=$'\t' read -r source target; do
  [ -z "$source" ] || { mkdir -p "./$target" && mount --bind "$source" "./$target"; }
done <<<"$COMMON"

hostname "$name"
pivot_root . run/old
umount --lazy /run/old
rmdir /run/old

# A clean environment: a host knows nothing of the shell that made the lab.
export -n CGROUP_FILES SHARES COMMON INSIDE
# shellcheck disable=SC2086 # the options are words
dockerd --host=unix:///run/docker.sock --cgroup-parent="/$CGROUP" --exec-opt=native.cgroupdriver=cgroupfs \
  $DOCKERD_OPTIONS >/var/log/dockerd.log 2>&1 &
# A host without its engine is not up: it ends, and whoever waits for it reads the engine's log.
until [ -S /run/docker.sock ]; do
  kill -0 $! || exit 1
  sleep 0.02
done
# sshd is started again when it ends, but not before whoever killed it says so.
while :; do
  [ -e /run/no_sshd ] || /usr/sbin/sshd -D -E /var/log/sshd.log -f /etc/ssh/lab_sshd_config || true
  sleep 0.1
done
