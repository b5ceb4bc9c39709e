#!/usr/bin/env bash
# Reviews the worker's results and reports to the planner, which is a MAP client and reads no files.
#   reviewer.sh MAIL_DIR COUNT
set -euo pipefail
MAIL=$1 ME=reviewer-1 left=$2
source "$(dirname "${BASH_SOURCE[0]}")/mail.sh"
while [ "$left" -gt 0 ]; do
  for file in $(unread); do
    text=$(field "$file" body)
    echo "reviewer: $(field "$file" subject) from $(field "$file" from)"
    [ "$text" = "${text^^}" ] && verdict=passed || verdict=failed
    post planner completion_report "$(field "$file" subject)" "$verdict: $text"
    mark "$file"
    left=$((left - 1))
  done
  sleep 0.05
done
