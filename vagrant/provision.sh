#!/usr/bin/env bash
# Makes an Ubuntu machine one that p4cc runs on, with Mininet and both switches; as root. Running it again is harmless.
set -euo pipefail

SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=/opt/p4cc
KEYRING=/etc/apt/keyrings/p4lang.gpg
APT_SOURCE=/etc/apt/sources.list.d/p4lang.list

# shellcheck source=vagrant/versions.env
. "$SOURCE/vagrant/versions.env"
export DEBIAN_FRONTEND=noninteractive

fail() {
    echo "provision.sh: $*" >&2
    exit 1
}

# install_packages NAME=VERSION...: that version, whatever its packaging revision. Without =VERSION: the distribution's.
install_packages() {
    local wanted=() name version
    for package in "$@"; do
        name=${package%%=*}
        version=${package#"$name"}
        version=${version#=}
        if [ -n "$version" ] && ! apt-cache madison "$name" | cut -d'|' -f2 | grep -q "^ *${version//./\\.}-"; then
            fail "$name $version is not published any more or not yet for this release (there is:" \
                "$(apt-cache madison "$name" | cut -d'|' -f2 | xargs)); set it in vagrant/versions.env"
        fi
        wanted+=("$name${version:+=$version-*}")
    done
    apt-get install -y --no-install-recommends --allow-downgrades "${wanted[@]}"
}

add_p4lang_repository() {
    local address="$P4LANG_REPOSITORY/xUbuntu_$1"
    install -d -m 755 "$(dirname "$KEYRING")"
    curl -fsSL "$address/Release.key" | gpg --dearmor >"$KEYRING.new" ||
        fail "no P4 packages are published for Ubuntu $1 ($address)"
    mv "$KEYRING.new" "$KEYRING"
    echo "deb [signed-by=$KEYRING] $address/ /" >"$APT_SOURCE"
}

# Built outside the working copy: what an earlier build left in it would be installed again.
install_p4cc() {
    local build
    build=$(mktemp -d)
    printf '[build]\nbuild_base = %s\n[egg_info]\negg_base = %s\n' "$build" "$build" >"$build/setup.cfg"
    [ -x "$VENV/bin/python" ] || python3 -m venv "$VENV"
    DIST_EXTRA_CONFIG=$build/setup.cfg "$VENV/bin/python" -m pip install --quiet --upgrade "$SOURCE"
    rm -rf "$build"
    ln -sf "$VENV/bin/p4cc" /usr/local/bin/p4cc
}

# small_incast SWITCH COMPILER
small_incast() {
    echo "--- incast in Mininet: switch $1, compiler $2"
    rm -rf /tmp/p4cc-incast
    "$VENV/bin/p4cc" run incast-star --world mininet --switch "$1" --compiler "$2" --cc dcqcn --out /tmp/p4cc-incast \
        --set topology.hosts=3 --set workload.senders=2 --set workload.size_bytes=20000 --set nic.rto_ns=500000
}

[ "$(id -u)" = 0 ] || fail "expected to be run as root"
release=$(. /etc/os-release && echo "$ID $VERSION_ID")
case $release in
"ubuntu "*) release=${release#ubuntu } ;;
*) fail "expected Ubuntu 22.04 or later, found $release" ;;
esac
dpkg --compare-versions "$release" ge 22.04 || fail "expected Ubuntu 22.04 or later, found $release"

apt-get update
install_packages ca-certificates curl gpg
add_p4lang_repository "$release"
apt-get update
echo "wireshark-common wireshark-common/install-setuid boolean false" | debconf-set-selections
install_packages "p4lang-p4c=$P4C_VERSION" "p4lang-bmv2=$BMV2_VERSION" "mininet=$MININET_VERSION" "tshark=$TSHARK_VERSION" \
    gcc libc6-dev python3-dev python3-venv iproute2 net-tools make

install_p4cc

p4cc doctor
small_incast builtin builtin
small_incast bmv2 builtin
small_incast bmv2 p4c
