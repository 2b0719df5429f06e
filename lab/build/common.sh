# SPDX-License-Identifier: GPL-2.0-or-later
# Shared by the shell scripts in lab/. Source it, do not run it.
# shellcheck shell=bash

set -euo pipefail

# The checkout by its own path, and by the path that all builds use. kbuild, make and
# QEMU's configure accept no path with a space. If there is one, builds use a link
# without it, at which lab/in-root mounts the checkout. lab/qhca_lab/paths.py does the same.
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
QHCA_TOP=$checkout
case $checkout in
*[!a-zA-Z0-9/._+@%~-]*)
    hash=$(printf %s "$checkout" | sha256sum | cut -c1-12)
    QHCA_TOP=/var/tmp/qhca-$(id -u)-$hash
    [ "$(readlink "$QHCA_TOP")" = "$checkout" ] || ln -sT -- "$checkout" "$QHCA_TOP"
    here=$(pwd -P)
    case $here/ in
    "$checkout"/*) cd "$QHCA_TOP${here#"$checkout"}" ;;
    esac
    ;;
esac
# shellcheck source=../versions.env
. "$QHCA_TOP/lab/versions.env"

# All build products are here; QHCA_BUILD moves them, QHCA_CACHE only the big roots.
BUILD=${QHCA_BUILD:-$QHCA_TOP/build}
CACHE=${QHCA_CACHE:-$BUILD/cache}
JOBS=${QHCA_JOBS:-$(nproc)}
export LC_ALL=C.UTF-8

# in_root PATH: the path without links, as it appears in the build root.
in_root() {
    local path
    path=$(readlink -f "$1")
    case $path/ in
    "$checkout"/*) path=$QHCA_TOP${path#"$checkout"} ;;
    esac
    printf '%s\n' "$path"
}

say() { printf 'qhca: %s\n' "$*" >&2; }
die() { printf 'qhca: error: %s\n' "$*" >&2; exit 1; }

# as_root COMMAND...: run a command as root, through sudo when we are not.
as_root() {
    if [ $EUID = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -- "$@"
    else
        die "this step needs root: run as root, or install sudo"
    fi
}

# key FILE... [-- WORD...]: short hash of the contents of files and of words.
key() {
    {
        while [ $# -gt 0 ] && [ "$1" != -- ]; do
            cat -- "$1"
            shift
        done
        printf '%s\n' "$@"
    } | sha256sum | cut -c1-12
}

# make_root: make the build root, and keep in a file for what, and as which one, with the time
# when this began: an input that has changed since is newer.
make_root() {
    local made=$BUILD/root.made
    mkdir -p "$BUILD"
    : >"$made.new"
    "$QHCA_TOP/lab/build/make-root" build
    printf '%s\n' "$QHCA_TOP $QHCA_SUITE $QHCA_ARCH $CACHE" "$(readlink -f "$BUILD/root")" >"$made.as"
    touch -r "$made.new" "$made.as"
    rm -f "$made.new"
    mv -f "$made.as" "$made"
}

# root_is_made: would it do nothing? This starts no program.
root_is_made() {
    local made=$BUILD/root.made input for_what root
    { read -r for_what && read -r root; } 2>/dev/null <"$made" || return 1
    [ "$for_what" = "$QHCA_TOP $QHCA_SUITE $QHCA_ARCH $CACHE" ] &&
        [ -d "$root/usr" ] && [ "$BUILD/root" -ef "$root" ] || return 1
    for input in make-root packages.guest packages.build common.sh ../versions.env; do
        [ "$made" -nt "$QHCA_TOP/lab/build/$input" ] || return 1
    done
}

# kernels QUESTION WHAT: query lab/qhca_lab/kernels.py.
kernels() {
    PYTHONPATH=$QHCA_TOP/lab python3 -c '
import sys
from qhca_lab import kernels
sys.exit(kernels.main(sys.argv[1:]))' "$@"
}

# kernel_for WHAT: set $kernel, the name of a kernel other than the guest image's; $out,
# the output folder of builds for it; and $kdir, against which they are built.
kernel_for() {
    kernel=$(kernels name "$1")
    [ -n "$kernel" ] || die "the guest image's kernel needs no --kernel"
    out=$BUILD/kernels/$kernel
    [ -d "$out/headers" ] || "$QHCA_TOP/lab/build/make-kernel" --headers "$1"
    kdir=$(in_root "$out/headers")
    # A build tree, and its source if that is elsewhere, must be visible in the root.
    if [ "$kernel" != newest ]; then
        QHCA_BIND="$kdir ${QHCA_BIND:-}"
        [ ! -L "$kdir/source" ] || QHCA_BIND="$(in_root "$kdir/source") $QHCA_BIND"
        export QHCA_BIND
    fi
}

# guest_headers: the path in the root of the headers that the build root has, which are
# those of one kernel, the guest image's: /usr/src/linux-headers-RELEASE.
guest_headers() { (cd "$BUILD/root" && printf '/%s\n' usr/src/linux-headers-*-"$QHCA_ARCH"); }

# unpack_linux DEB SERIES FOLDER [PATTERN...]: unpack the kernel's source from
# Debian's package, or the files that match the patterns, below FOLDER.
unpack_linux() {
    local deb=$1 name=linux-source-$2 folder=$3
    shift 3
    # shellcheck disable=SC2016 # expanded by the inner shell
    "$QHCA_TOP/lab/in-root" sh -c 'deb=$1 name=$2 folder=$3
        shift 3
        dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$name.tar.xz" |
            tar -xJ -C "$folder" --strip-components=1 --wildcards \
                --no-wildcards-match-slash "$@"' \
        sh "$deb" "$name" "$folder" "${@/#/$name/}"
}

# packages FILE: the words of FILE, without comments.
packages() { sed 's/#.*//' "$1" | tr -s ' \t\n' ' '; }

# without_observers QEMU: fail if the program contains the device's observers.
without_observers() {
    local symbols
    symbols=$("$QHCA_TOP/lab/in-root" nm "$1")
    if grep ' T qhca_\(observe\|break_add\|fault_add\|inspect\)$' <<<"$symbols"; then
        die "$1 still contains these observers"
    fi
}

# quiet WHAT COMMAND...: run COMMAND with its output in build/log/WHAT.log; if it
# fails, show the end of the log and exit.
quiet() {
    local what=$1 log
    shift
    mkdir -p "$BUILD/log"
    log=$BUILD/log/${what// /-}.log
    # In the background, because "if ! function" would switch errexit off in it.
    "$@" >"$log" 2>&1 </dev/null &
    if ! wait $!; then
        tail -n 40 "$log" >&2
        die "$what failed; the full log is $log"
    fi
}

# timed WHAT COMMAND...: like quiet, but report what is done and how long it took.
timed() {
    local t0=$SECONDS
    say "$1 ... (log: ${BUILD#"$PWD"/}/log/${1// /-}.log)"
    quiet "$@"
    say "$1: done in $((SECONDS - t0)) s"
}
