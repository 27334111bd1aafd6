#!/bin/sh
# Sees to it that Spark finds a Java it runs on: takes the one that is there, else installs Debian's, else says so.
set -eu

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1) || version=""
[ "${version:-0}" -ge 17 ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing openjdk-17-jre-headless, which Spark needs ..."
    export DEBIAN_FRONTEND=noninteractive
    if { apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; } >/dev/null 2>&1; then
        exit 0
    fi
fi
echo "Spark needs Java 17 or newer, which is not here and cannot be installed by make; install it (Debian: openjdk-17-jre-headless)." >&2
exit 1
