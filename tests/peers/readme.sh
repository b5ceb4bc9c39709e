#!/usr/bin/env bash
# Types the README's steps as a new user would: an empty home, the server started in some directory, the published MAP SDK and the
# published MCP SDK as a coding agent.
#   tests/peers/readme.sh BINARY MAP_KIT MCP_KIT
# The kits are directories with the node_modules of examples/map and examples/mcp.
set -euo pipefail
binary=$(realpath "$1") map_kit=$(realpath "$2") mcp_kit=$(realpath "$3")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT

mkdir -p "$work/bin" "$work/home" "$work/somewhere" "$work/repo/src"
ln -s "$binary" "$work/bin/posthaste"
export PATH=$work/bin:$PATH HOME=$work/home
unset "${!POSTHASTE_@}" XDG_DATA_HOME XDG_CONFIG_HOME

# The README's shell block that contains a line, with the address of this server.
block() {
  awk -v mark="$1" '/^```sh$/ { inside = 1; text = ""; next }
    /^```$/ { if (inside && index(text, mark)) printf "%s", text; inside = 0; next }
    inside { text = text $0 "\n" }' "$root/README.md" | sed "s/127\.0\.0\.1:7678/$address/"
}
wait_for() { # FILE TEXT
  for _ in $(seq 200); do grep -qF -- "$2" "$1" 2>/dev/null && return 0; sleep 0.05; done
  echo "did not come: $2; $1 says:"; cat "$1"; return 1
}
agent() { # runs the README's agent in the background; its output goes to FILE
  (cd "$work" && bash -euc "$(block 'ann.mjs' | sed "s|^npm install.*|ln -s '$map_kit/node_modules' node_modules|; s|^mkdir ann|rm -rf ann; mkdir ann|; s|node ann.mjs|exec node ann.mjs|")") >"$1" 2>&1 &
  pids+=($!); agent=$!
}

: >"$work/server"
(cd "$work/somewhere" && exec posthaste serve --listen 127.0.0.1:0 --log-level error) >"$work/server" 2>&1 &
pids+=($!)
wait_for "$work/server" "ready http://"
address=$(sed -n 's|^ready http://||p' "$work/server")

echo "-- an agent by MAP, and a person"
agent "$work/ann.1"
wait_for "$work/ann.1" "ann waits for mail"
(cd "$work" && bash -euc "$(block '--from me --to ann')") >/dev/null
wait_for "$work/ann.1" "me writes:"
for _ in $(seq 100); do posthaste inbox --agent me >"$work/inbox"; grep -q Reviewed "$work/inbox" && break; sleep 0.05; done
wait_for "$work/inbox" "Reviewed"

echo "-- the agent is killed, gets mail, and comes back as itself"
kill -9 "$agent"; wait "$agent" 2>/dev/null || true
echo "Once more." | posthaste send --from me --to ann --subject Again >/dev/null
agent "$work/ann.2"
wait_for "$work/ann.2" "ann waits for mail"
wait_for "$work/ann.2" "Once more."

echo "-- a coding agent in a repository, and one below it"
(cd "$work/repo" && git init -q . && posthaste connect claude-code --write) >"$work/connect"
! grep -rq 'ph_' "$work/repo/.mcp.json" || { echo "a token is in .mcp.json"; exit 1; }
cp "$root/tests/peers/coding_agent.mjs" "$mcp_kit/coding_agent.mjs"
(cd "$work/repo" && node "$mcp_kit/coding_agent.mjs" "$work/repo/.mcp.json" "$work/repo" ann operator)
(cd "$work/repo/src" && node "$mcp_kit/coding_agent.mjs" "$work/repo/.mcp.json" "$work/repo/src" ann)
wait_for "$work/ann.2" "Hello from $work/repo"
wait_for "$work/ann.2" "Hello from $work/repo/src"
posthaste inbox >"$work/operator"
wait_for "$work/operator" "Hello from $work/repo"

echo "-- curl and the command line"
(cd "$work" && bash -euc "$(block 'call send')") >"$work/curl"
wait_for "$work/curl" '"body":"The branch is up."'
(cd "$work" && bash -euc "$(block 'posthaste tail')") >"$work/people"
wait_for "$work/people" "message.sent"
echo "the README's steps work"
