#!/bin/sh
# Ensures that Spark has a Java it can use: the one that is installed, or Debian's, which root may install.
set -eu

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"

new_enough() {
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
    [ "${version:-0}" -ge 17 ]
}

new_enough && exit 0
if [ -n "${JAVA_HOME:-}" ]; then # Spark uses JAVA_HOME, so installing another Java would not help.
    what="${version:+is version $version}"
    echo "Spark needs Java 17 or newer, and JAVA_HOME ($JAVA_HOME) ${what:-has no bin/java that runs}; set it to one, or unset it." >&2
    exit 1
fi

said=""
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Java, which Spark needs ..."
    export DEBIAN_FRONTEND=noninteractive
    said=$(apt-get update -qq 2>&1) || true # Packages that apt already knows may be enough.
    for package in openjdk-17-jre-headless openjdk-21-jre-headless; do # Each release of Debian has one of them.
        more=$(apt-get install -y -qq --no-install-recommends "$package" 2>&1) && new_enough && exit 0
        said="$said
$more"
    done
fi
[ -z "$said" ] || echo "$said" | tail -n 5 >&2
echo "Spark needs Java 17 or newer. It is not installed, and make cannot install it: install it yourself (Debian: openjdk-17-jre-headless)." >&2
exit 1
