#!/usr/bin/env bash
# Two agents in plain bash exchange work through files with a Python agent on MAP; the server connects them.
#   run.sh [POSTHASTE]        the program to use [default: posthaste on the PATH]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
posthaste=${1:-posthaste} count=3
work=$(mktemp -d) pids=()
finish() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$work"; }
trap finish EXIT

mail=$work/.chipset/state/mail
mkdir -p "$mail/worker-1" "$mail/reviewer-1"; : >"$work/out"
"$posthaste" serve --data "$work/data" --listen 127.0.0.1:0 --mail-dir "$mail" --log-level warn >"$work/out" 2>"$work/err" &
pids+=($!)
for _ in $(seq 100); do url=$(sed -n 's/^ready //p' "$work/out"); [ -n "$url" ] && break; sleep 0.1; done
[ -n "$url" ] || { cat "$work/err" >&2; exit 1; }

"$here/worker.sh" "$mail" "$count" & pids+=($!)
"$here/reviewer.sh" "$mail" "$count" & pids+=($!)
token=$("$posthaste" token create --data "$work/data" --role agent --name planner)
timeout 60 python3 "$here/planner.py" "$url" "$token" "$count"
