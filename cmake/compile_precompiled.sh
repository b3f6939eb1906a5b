#!/bin/sh
# compile_precompiled.sh CCACHE COMPILER ... -o FILE ...: removes FILE, then runs the rest. With an older precompiled header in
# place, ccache takes that file for what the sources include, and hands over a header that was made from other sources.
next=
for word in "$@"; do
  [ "$next" ] && rm -f "$word" && break
  [ "$word" = -o ] && next=1
done
exec "$@"
