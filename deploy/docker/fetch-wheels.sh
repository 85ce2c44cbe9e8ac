#!/bin/sh
# Fills `wheels/`, so that images build without a network, or behind a proxy whose certificates only
# this machine trusts. They come from wherever this machine's pip gets them. The hashes of the lock
# file hold for them too.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
wheels=${1:-$here/wheels}
python=${INFERBUS_IMAGE_PYTHON:-3.11}

list=$(mktemp)
trap 'rm -f "$list"' EXIT
cd "$here/../.."
uv export --quiet --frozen --no-dev --no-emit-workspace --no-header --no-annotate >"$list"
uv run --quiet --no-project --with pip python -m pip download --quiet --no-deps \
    --require-hashes --only-binary :all: --python-version "$python" --dest "$wheels" \
    --requirement "$list" --requirement "$here/tools.txt"
