#!/bin/sh
# Sees to it that Spark finds a Java it runs on: takes the one that is there, else installs Debian's, else says so.
set -eu

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"

new_enough() {
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
    [ "${version:-0}" -ge 17 ]
}

new_enough && exit 0
if [ -n "${JAVA_HOME:-}" ]; then # which Spark goes by, so another Java beside it would change nothing
    what="${version:+is version $version}"
    echo "Spark needs Java 17 or newer, and JAVA_HOME ($JAVA_HOME) ${what:-has no bin/java that runs}; set it to one, or unset it." >&2
    exit 1
fi

said=""
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Java, which Spark needs ..."
    export DEBIAN_FRONTEND=noninteractive
    said=$(apt-get update -qq 2>&1) || true # what is known already may do
    for package in openjdk-17-jre-headless openjdk-21-jre-headless; do # a release has the one or the other
        more=$(apt-get install -y -qq --no-install-recommends "$package" 2>&1) && new_enough && exit 0
        said="$said
$more"
    done
fi
[ -z "$said" ] || echo "$said" | tail -n 5 >&2
echo "Spark needs Java 17 or newer, which is not here and cannot be installed by make; install it (Debian: openjdk-17-jre-headless)." >&2
exit 1
