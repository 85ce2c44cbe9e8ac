#!/bin/sh
# Writes the NATS server's configuration, and each user's password into the one volume that is
# mounted at /credentials/<user>. Passwords that are there stay; run again it changes nothing.
set -eu

server=/etc/inferbus/server
inferbus provision --write-config "$server" --server-directory /data --host 0.0.0.0 "$@"
chown -R inferbus:inferbus "$server"
for folder in /credentials/*/; do
    user=$(basename "$folder")
    install --owner=inferbus --group=inferbus --mode=0400 \
        "$server/credentials/$user.json" "$folder$user.json"
done
