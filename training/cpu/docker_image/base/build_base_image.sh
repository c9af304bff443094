#!/usr/bin/env bash
# Build the base image of FlagPerf's cpu images from this machine's own Debian or Ubuntu packages.
#
#   build_base_image.sh [--force] [TAG]        TAG: default flagperf-base:<codename>
#
# For machines that can reach a package mirror but no image registry. The image plays the role of
# "python:3.x-slim": a minimal Debian or Ubuntu with python3 and pip, 144 MB for bookworm. It takes about 40 s,
# and nothing when an image of the same recipe is already there.
#
# Mirror, suite, components, keyring and proxy are what this machine's apt uses. So are the certificates in
# /usr/local/share/ca-certificates: behind a mirror with a private CA, apt and pip work inside as they do outside.
#
# Environment: ENGINE    the container engine's command line: docker (default) or podman
#              MIRROR    another package mirror, e.g. http://mirror.example.org/debian
#              KEYRING   the keyring that this mirror's Release file is signed with
#              TMPDIR    where the tree is unpacked (400 MB; not on a noexec or nodev mount): default /var/tmp
set -euo pipefail

ENGINE=${ENGINE:-docker}
# procps: ps and free for whoever looks into a running container. The rest of minbase is what apt itself needs.
PACKAGES=python3,python3-pip,python3-venv,ca-certificates,procps
# What no training container reads; bytecode stays, because without it every container start compiles it anew.
LITTER=(usr/share/doc usr/share/man usr/share/info usr/share/locale usr/share/lintian
        var/cache/apt var/lib/apt/lists var/cache/debconf var/log)
CA_FOLDER=usr/local/share/ca-certificates

say() { printf 'build_base_image: %s\n' "$*" >&2; }
die() { say "$1"; [ -z "${2:-}" ] || say "  -> $2"; exit 1; }

read_arguments() {
  force=no tag=
  for argument in "$@"; do
    case $argument in
      --force) force=yes ;;
      -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit 0 ;;
      -*) die "unknown option $argument" "$0 --help" ;;
      *) tag=$argument ;;
    esac
  done
}

check_machine() {
  command -v apt-get >/dev/null ||
    die "this machine has no apt: the image is made of Debian or Ubuntu packages" \
        "on a machine with a registry: $ENGINE pull python:3.11-slim && $ENGINE tag python:3.11-slim ${tag:-flagperf-base:any}"
  command -v "$ENGINE" >/dev/null ||
    die "there is no '$ENGINE' command" "apt-get install -y docker.io   (or set ENGINE=podman)"
  local answer
  answer=$("$ENGINE" version 2>&1 >/dev/null) ||
    die "'$ENGINE version' fails: ${answer##*$'\n'}" "systemctl start docker   (without systemd: dockerd &), as root"
}

check_builder() {
  [ "$(id -u)" = 0 ] || die "unpacking a system tree needs root" "sudo ENGINE=$ENGINE $0"
  command -v debootstrap >/dev/null || die "debootstrap is not installed" "apt-get install -y debootstrap"
}

# One line a package index that apt reads for this release: <uri>|<suite>|<component>|<keyring>.
package_indexes() {
  # apt-get parses the sources (both formats) and fills in $(...) itself: these are not shell expansions.
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SIGNED_BY)' 'Created-By: Packages' |
    grep -E "^[^|]*\|$codename(-updates|-security)?\|" || true
}

read_apt_settings() {
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && printf %s "${VERSION_CODENAME:-}")
  # shellcheck source=/dev/null
  distribution=$(. /etc/os-release && printf %s "$ID")
  [ -n "$codename" ] || die "/etc/os-release names no VERSION_CODENAME" "use a Debian or Ubuntu release"
  indexes=$(package_indexes)
  local main
  main=$(grep -m1 "|$codename|main|" <<<"$indexes") || [ -n "${MIRROR:-}" ] ||
    die "no apt source of this machine serves suite '$codename', component 'main'" \
        "MIRROR=http://mirror.example.org/$distribution $0"
  mirror=${MIRROR:-${main%%|*}}
  # python3-pip is in Ubuntu's universe; non-free components are not needed.
  components=$(grep "|$codename|" <<<"$indexes" | cut -d'|' -f3 | grep -xE 'main|universe' | sort -u | paste -sd,)
  components=${components:-main}
  keyring=${KEYRING:-${main##*|}}
  # apt leaves the field empty or unfilled where the source names no key file; then its key is the distribution's.
  [ -f "$keyring" ] || keyring=/usr/share/keyrings/$distribution-archive-keyring.gpg
  [ -f "$keyring" ] || die "there is no keyring $keyring" "KEYRING=/path/to/mirror.gpg $0"
  local proxy=
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=$proxy
}

# Everything that shapes the image; a changed recipe is another image under the same tag.
recipe_hash() {
  { declare -f unpack settle import_tree
    printf '%s\n' "$PACKAGES" "${LITTER[@]}" "$codename" "$mirror" "$components" "$indexes"
    cat /"$CA_FOLDER"/*.crt 2>/dev/null || true; } | sha256sum | cut -c1-16
}

is_built() {
  [ "$force" = no ] &&
    [ "$("$ENGINE" image inspect --format '{{index .Config.Labels "flagperf.base.recipe"}}' "$tag" 2>/dev/null)" = "$recipe" ]
}

unpack() {
  say "unpacking $distribution $codename from $mirror (log: $work/debootstrap.log)"
  # A mount namespace of its own: what debootstrap mounts in the tree is gone when it ends, however it ends.
  unshare --mount --propagation private debootstrap --variant=minbase --components="$components" \
    --include="$PACKAGES" --keyring="$keyring" "$codename" "$tree" "$mirror" >"$work/debootstrap.log" 2>&1 ||
    { tail -n 20 "$work/debootstrap.log" "$tree/debootstrap/debootstrap.log" >&2 2>/dev/null || true
      die "debootstrap failed; its last lines stand above" \
          "check that $mirror serves $codename signed by $keyring (MIRROR=, KEYRING=)"; }
}

settle() {
  awk -F'|' 'NF { print "deb", $1, $2, $3 }' <<<"$indexes" >"$tree/etc/apt/sources.list"
  [ -s "$tree/etc/apt/sources.list" ] || echo "deb $mirror $codename ${components//,/ }" >"$tree/etc/apt/sources.list"
  if compgen -G "/$CA_FOLDER/*.crt" >/dev/null; then
    cp /"$CA_FOLDER"/*.crt "$tree/$CA_FOLDER/"
    chroot "$tree" update-ca-certificates >>"$work/debootstrap.log" 2>&1
  fi
  # The mark keeps pip out of a system that belongs to a person; this one belongs to the training job.
  rm -f "$tree"/usr/lib/python3*/EXTERNALLY-MANAGED
  local folder
  for folder in "${LITTER[@]}"; do
    if [ -d "$tree/$folder" ]; then find "$tree/$folder" -mindepth 1 -delete; fi
  done
  mkdir -p "$tree/var/cache/apt/archives/partial" "$tree/var/lib/apt/lists/partial" "$tree/var/log/apt"
  rm -rf "$tree/debootstrap" "${tree:?}"/dev/* "$tree/etc/hostname" "$tree/etc/resolv.conf"
}

import_tree() {
  tar --create --numeric-owner --one-file-system --directory "$tree" . |
    "$ENGINE" import \
      --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
      --change 'ENV LANG=C.UTF-8' \
      --change 'ENV PIP_ROOT_USER_ACTION=ignore' \
      --change 'CMD ["python3"]' \
      --change "LABEL flagperf.base.recipe=$recipe" \
      - "$tag"
}

clean() { [ -z "${work:-}" ] || rm -rf --one-file-system "$work"; }

read_arguments "$@"
check_machine
read_apt_settings
tag=${tag:-flagperf-base:$codename}
recipe=$(recipe_hash)
if is_built; then say "$tag is there already (recipe $recipe)"; exit 0; fi
check_builder
trap clean EXIT
trap 'exit 130' INT TERM
work=$(mktemp -d "${TMPDIR:-/var/tmp}/flagperf-base.XXXXXX")
tree=$work/tree
unpack
settle
import_tree >/dev/null
say "built $tag (recipe $recipe), $("$ENGINE" image inspect --format '{{.Size}}' "$tag" | awk '{printf "%.0f MB", $1 / 1e6}')"
