#!/usr/bin/env bash
# Takes assignments from its mailbox, does them, and sends each result to the reviewer. It needs no server.
#   worker.sh MAIL_DIR COUNT
set -euo pipefail
MAIL=$1 ME=worker-1 left=$2
source "$(dirname "${BASH_SOURCE[0]}")/mail.sh"
while [ "$left" -gt 0 ]; do
  for file in $(unread); do
    [ "$(field "$file" type)" = work_assignment ] || continue
    text=$(field "$file" body)
    echo "worker: $(field "$file" subject)"
    post reviewer-1 coordination "$(field "$file" subject)" "$(tr '[:lower:]' '[:upper:]' <<<"$text")"
    mark "$file"
    left=$((left - 1))
  done
  sleep 0.05
done
