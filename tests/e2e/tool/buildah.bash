# Sourced. Images by buildah in a chroot, without a Docker daemon, on a base image that debootstrap makes, which needs no
# registry of images. Needs root. Sets $work, which is removed when the script ends; at_exit may be set to a function.
name=$(basename "$0")
work=$(mktemp -d) at_exit=:
fail() { printf '%s: %s\n' "$name" "$1" >&2 && exit 1; }
# shellcheck disable=SC2317 # called by the trap
leave() {
    local status=$?
    $at_exit || true
    buildah rm --all >/dev/null || true
    rm -rf "$work"
    exit "$status"
}
((EUID == 0)) || fail "debootstrap and buildah need root here"
# Storage of its own, which needs no overlay and goes with the directory.
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot BUILDAH_FORMAT=docker
cat >"$work/storage.conf" <<END
[storage]
driver = "vfs"
graphroot = "$work/storage"
runroot = "$work/run"
END
export CONTAINERS_STORAGE_CONF=$work/storage.conf
trap leave EXIT
trap 'exit 143' INT TERM HUP
trap 'echo "$name: line $LINENO failed" >&2' ERR

echo "Make the base image"
debootstrap --variant=minbase bookworm "$work/base" >"$work/log" 2>&1 || fail "debootstrap: $(tail -n 1 "$work/log")"
# What this machine needs to reach packages, the image's steps need too: apt's settings, certificates of a proxy.
cp /etc/apt/apt.conf.d/* "$work/base/etc/apt/apt.conf.d/"
mkdir -p "$work/base/usr/local/share"
cp -r /usr/local/share/ca-certificates "$work/base/usr/local/share/"
base=$(buildah from scratch)
buildah add -q "$base" "$work/base" / >/dev/null
buildah commit -q "$base" debian:12-slim >/dev/null
buildah rm "$base" >/dev/null
rm -rf "$work/base"

words_of() { # words_of IMAGE Cmd|Entrypoint: one a line
    buildah inspect --type image --format "{{range .OCIv1.Config.$2}}{{println .}}{{end}}" "$1" | sed '/^$/d'
}
checkout() { # checkout DIRECTORY: what git has of this project
    mkdir -p "$1"
    git -C "$root" ls-files -z | tar -C "$root" --null -T - -c | tar -C "$1" -x
}
build() { # build IMAGE ARGUMENT...
    buildah build --pull-never -t "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2 && fail "$1 cannot be built"; }
}
