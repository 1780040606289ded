#!/usr/bin/env bash
# Makes packages of the release build, in target/package:
#
#   scripts/package.sh deb        ladon_VERSION_ARCH.deb
#   scripts/package.sh tarball    ladon-VERSION-ARCH.tar.gz, and the debug information in a file of its own
#   scripts/package.sh image      image/, a directory in the OCI layout: skopeo copy oci:target/package/image:VERSION ...
#   scripts/package.sh sbom       ladon.cdx.json, the libraries in the program (CycloneDX)
#   scripts/package.sh            all of them
#
# LADON_PROFILE=fast takes another build profile, to try the packages without the long link.
# LADON_NO_BUILD=1 takes the program that is there.
# Needs cargo-deb and cargo-cyclonedx (cargo install, see --tools), umoci for the image, and binutils.
#
#   scripts/package.sh --tools    installs what is missing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

profile=${LADON_PROFILE:-release}
built=target/$profile
[[ $profile == dev ]] && built=target/debug
out=target/package
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
arch=$(uname -m)
# What makes archives differ from build to build.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

tools() {
    command -v cargo-deb >/dev/null || cargo install --locked cargo-deb
    command -v cargo-cyclonedx >/dev/null || cargo install --locked cargo-cyclonedx
    command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
    local missing=() program
    for program in umoci lintian mmdebstrap; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    ((${#missing[@]})) || return 0
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends "${missing[@]}" ||
        { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; }
}

need() {
    command -v "$1" >/dev/null && return
    echo "scripts/package.sh: $1 is missing; scripts/package.sh --tools installs it" >&2
    exit 1
}

# The program, and what it says about itself.
build() {
    [[ ${LADON_NO_BUILD:-} == 1 ]] || cargo build --locked --profile "$profile" --bin ladon
    [[ -e $out/.built-$profile && $out/.built-$profile -nt $built/ladon ]] && return
    rm -rf "$out/man" "$out/completions"
    mkdir -p "$out/man" "$out/completions"
    local program=$built/ladon
    "$program" man "$out/man"
    "$program" completions bash >"$out/completions/ladon.bash"
    "$program" completions zsh >"$out/completions/_ladon"
    "$program" completions fish >"$out/completions/ladon.fish"
    # The program that is shipped has no debug information: see docs/operating/install.md.
    objcopy --only-keep-debug --compress-debug-sections "$program" "$out/ladon.debug"
    strip -o "$out/ladon" "$program"
    objcopy --add-gnu-debuglink="$out/ladon.debug" "$out/ladon"
    touch "$out/.built-$profile"
}

sbom() {
    need cargo-cyclonedx
    cargo cyclonedx --manifest-path crates/ladon/Cargo.toml --format json --spec-version 1.5 \
        --target "$(rustc -vV | sed -n 's/^host: //p')" --override-filename ladon.cdx >/dev/null
    mkdir -p "$out"
    # One file for each crate of the workspace; the program's has all.
    mv crates/ladon/ladon.cdx.json "$out/ladon.cdx.json"
    rm -f crates/*/ladon.cdx.json
    echo "$out/ladon.cdx.json"
}

changelog() {
    cat >"$out/changelog.Debian" <<EOF
ladon ($version-1) unstable; urgency=medium

  * See /usr/share/doc/ladon/README.md, and CHANGELOG.md in the sources.

 -- The Ladon authors <packages@ladon.invalid>  $(date -uRd "@$SOURCE_DATE_EPOCH")
EOF
}

deb() {
    need cargo-deb
    build
    sbom
    changelog
    # Its assets are named for the profile `release`, whichever it is.
    cargo deb --quiet --locked --no-build --profile "$profile" --package ladon-bin --output "$out/"
    ls "$out"/ladon_*.deb
}

tarball() {
    build
    sbom
    local name=ladon-$version-$arch folder=$out/tar
    rm -rf "$folder"
    mkdir -p "$folder/$name"
    cp "$out/ladon" "$folder/$name/"
    cp -r "$out/man" "$out/completions" "$folder/$name/"
    cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$out/ladon.cdx.json" \
        packaging/ladon.service packaging/ladon.toml "$folder/$name/"
    tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"
    rm -rf "$folder"
    cp "$out/ladon.debug" "$out/$name.debug"
    ls "$out/$name.tar.gz"
}

# The program, the libraries that it names, and nothing else: no shell, no package manager. umoci
# needs no daemon, and no rights but to give the data's folder its owner.
image() {
    need umoci
    build
    sbom
    local layout=$out/image root=$out/root
    rm -rf "$layout" "$root"
    mkdir -p "$root"/{bin,etc,data,tmp,usr/share/doc/ladon}
    cp "$out/ladon" "$root/bin/ladon"
    local library
    for library in $(ldd "$out/ladon" | grep -o '/[^ ]*'); do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
        strip --strip-unneeded "$root$library" 2>/dev/null || true
    done
    # Names of hosts: glibc asks these files, and loads these libraries when it does.
    for library in libnss_dns.so.2 libnss_files.so.2 libresolv.so.2; do
        local found
        found=$(ldconfig -p | grep -F "$library" | grep -o '/[^ ]*' | head -1)
        [[ -n $found && ! -e $root$found ]] && mkdir -p "$root$(dirname "$found")" && cp -L "$found" "$root$found"
    done
    echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
    echo 'ladon:x:65532:65532:Ladon:/data:/bin/false' >"$root/etc/passwd"
    echo 'ladon:x:65532:' >"$root/etc/group"
    cp LICENSE-MIT LICENSE-APACHE "$out/ladon.cdx.json" "$root/usr/share/doc/ladon/"
    umoci init --layout "$layout"
    umoci new --image "$layout:$version"
    # A new volume takes owner and rights of the folder that it covers.
    local rights=()
    if [[ $(id -u) == 0 ]]; then
        chown 65532:65532 "$root/data"
        chmod 0700 "$root/data"
    else
        rights=(--rootless)
        chmod 0777 "$root/data"
    fi
    chmod 1777 "$root/tmp"
    find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
    umoci insert ${rights[@]+"${rights[@]}"} --image "$layout:$version" "$root" /
    umoci config --image "$layout:$version" \
        --config.user 65532:65532 \
        --config.entrypoint /bin/ladon \
        --config.cmd serve \
        --config.env LADON_DATA=/data \
        --config.env LADON_BIND='* ::*' \
        --config.env LADON_LOGFORMAT=json \
        --config.volume /data \
        --config.exposedports 6379/tcp \
        --config.workingdir /data \
        --config.label org.opencontainers.image.title=Ladon \
        --config.label "org.opencontainers.image.version=$version" \
        --config.label 'org.opencontainers.image.licenses=MIT OR Apache-2.0'
    umoci gc --layout "$layout"
    rm -rf "$root"
    echo "$layout: $(du -sb "$layout" | cut -f1) bytes"
}

(($#)) || set -- deb tarball image
for part in "$@"; do
    case "$part" in
        --tools) tools ;;
        deb | tarball | image | sbom) "$part" ;;
        -h | --help) sed -n '2,16s/^# \{0,1\}//p' "$0" ;;
        *) echo "scripts/package.sh: '$part' is not a package; use deb, tarball, image, sbom" >&2; exit 2 ;;
    esac
done
