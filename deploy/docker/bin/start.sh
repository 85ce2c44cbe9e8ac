#!/bin/sh
# Starts the container's program with a name, and an address for its metrics and health pages, that
# no other container has. Both stay the same when the container is restarted.
#
# The host's name would do as a name, were it not shared by containers that share a network. There
# (INFERBUS_SHARED_NETWORK) the pages stand on a loopback address of their own, see ADR 0013.
set -eu

if [ "$INFERBUS_SERVICE" = cli ]; then
    exec inferbus "$@"
fi

run=${INFERBUS_RUN:-/run/inferbus}
memory=$run/instance
if [ ! -s "$memory" ]; then
    read -r random </proc/sys/kernel/random/uuid
    printf '%s' "${random%%-*}" >"$memory"
fi
id=$(cat "$memory")

address=0.0.0.0
if [ -n "${INFERBUS_SHARED_NETWORK:-}" ]; then
    last_four=${id#????}
    address=127.0.$((0x${last_four%??} | 128)).$((0x${last_four#??}))
fi
printf '%s 9100' "$address" >"$run/pages"

prefix=INFERBUS_$(printf '%s' "$INFERBUS_SERVICE" | tr 'a-z-' 'A-Z_')
export INFERBUS_INSTANCE="${INFERBUS_INSTANCE:-$INFERBUS_SERVICE-$id}"
export "${prefix}_HTTP_HOST=$address" "${prefix}_HTTP_PORT=9100"
exec "inferbus-$INFERBUS_SERVICE" "$@"
