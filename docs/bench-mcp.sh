#!/usr/bin/env bash
# Measures the MCP door and the PyPI package mcp-agent-mail 0.1.0 (plain MIT) on this machine, one after the other in one run.
#
#   docs/bench-mcp.sh POSTHASTE BENCH_KIT [OUT]
#
# POSTHASTE: a release build. BENCH_KIT: the folder with mcpbench.py and coldstart.py. OUT: directory for the results (default: a
# temporary directory, named at the end). Needs Python 3.11 or newer with venv; takes about five minutes, most of it for the peer.
# Every message is sent through the tools, except in the peer's inbox of 1 k and 10 k, which is filled in its own database:
# by tool it would take an hour. The peer's reservations and search need another tool, so those are measured for posthaste only.
set -euo pipefail
bin=$(realpath "$1"); kit=$(realpath "$2"); out=${3:-$(mktemp -d)}; mkdir -p "$out"; out=$(realpath "$out")
python=${PYTHON:-python3}; peer_port=18765; pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done' EXIT
[ -x "$out/venv/bin/python" ] || { "$python" -m venv "$out/venv"; "$out/venv/bin/pip" -q install mcp-agent-mail==0.1.0 httpx; }
py=$out/venv/bin/python
bench() { "$py" "$kit/mcpbench.py" --client raw "$@"; }

echo "== posthaste"
rm -rf "$out/ours"; mkdir -p "$out/ours"; : >"$out/ours.log"
"$bin" serve --data "$out/ours" --listen 127.0.0.1:0 --log-level error >"$out/ours.log" 2>&1 & pid=$!; pids+=("$pid")
for _ in $(seq 100); do url=$(sed -n 's/^ready //p' "$out/ours.log"); [ -n "$url" ] && break; sleep 0.1; done
bench --url "$url/mcp" --token "$(cat "$out/ours/admin.token")" --pid "$pid" --store "$out/ours" --sends1 500 --sends8 200 --mixed-s 10 \
  --phases ping,send1,send8,fill1k,inbox1k,fill10k,inbox10k,search,reserve,mixed --out "$out/ours.json"
kill "$pid"; wait "$pid" || true

echo "== mcp-agent-mail 0.1.0"
rm -rf "$out/peer" "$out/peer.state"; mkdir -p "$out/peer"
(cd "$out/peer" && LITELLM_LOCAL_MODEL_COST_MAP=True STORAGE_ROOT=$out/peer/archive exec "$py" -m mcp_agent_mail.http --port $peer_port >"$out/peer.log" 2>&1) & pid=$!; pids+=("$pid")
for _ in $(seq 300); do curl -s -o /dev/null "http://127.0.0.1:$peer_port/health/liveness" && break; sleep 0.2; done
peer() { bench --url "http://127.0.0.1:$peer_port/mcp/" --pid "$pid" --state "$out/peer.state" "$@"; }
peer --phases ping,send1 --sends1 40 --reads 50 --out "$out/peer-sends.json"
# With eight at once a client may wait for longer than a minute, which ends this phase.
rm -f "$out/peer-send8.json"
peer --phases send8 --sends8 4 --out "$out/peer-send8.json" 2>"$out/peer-send8.err" || echo "send8: no figure: $(tail -1 "$out/peer-send8.err")"
fill() { # fill COUNT: the reader's inbox, in the peer's own database
  "$py" - "$out/peer/storage.sqlite3" "$out/peer.state" "$1" <<'P'
import datetime, json, random, sqlite3, sys
path, state, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
kept = json.load(open(state)); db = sqlite3.connect(path, timeout=60)
project = db.execute("select id from projects where human_key = ?", [kept["project"]]).fetchone()[0]
agent = dict(db.execute("select name, id from agents where project_id = ?", [project]))
words = "deploy login schema cache token retry latency queue index shard worker build review merge branch".split()
for n in range(count - kept.get("sent", 0)):
    body, now = " ".join(random.choices(words, k=160))[:1000], datetime.datetime.now(datetime.timezone.utc).isoformat(sep=" ")[:26]
    cursor = db.execute("insert into messages(project_id, sender_id, subject, body_md, importance, ack_required, created_ts, attachments)"
                        " values(?,?,?,?,'normal',0,?,'[]')", [project, agent["BlueLake"], f"fill {n}", body, now])
    db.execute("insert into message_recipients(message_id, agent_id, kind) values(?,?,'to')", [cursor.lastrowid, agent["GreenCastle"]])
db.commit(); kept["sent"] = count; json.dump(kept, open(state, "w"))
P
}
fill 1000; peer --phases inbox1k --reads 60 --out "$out/peer-1k.json"
fill 10000; peer --phases inbox10k --reads 60 --out "$out/peer-10k.json"
kill "$pid"; wait "$pid" || true

echo "== cold start"
mkdir -p "$out/cold"; touch "$out/cold/.bench-ok"
"$py" "$kit/coldstart.py" --cmd "$bin serve --data $out/cold --listen 127.0.0.1:18766 --no-auth --log-level error" \
  --mcp http://127.0.0.1:18766/mcp --health http://127.0.0.1:18766/health/liveness --runs 5
(cd "$out/peer" && LITELLM_LOCAL_MODEL_COST_MAP=True "$py" "$kit/coldstart.py" --cmd "$py -m mcp_agent_mail.http --port $peer_port" \
  --mcp http://127.0.0.1:$peer_port/mcp/ --health http://127.0.0.1:$peer_port/health/liveness --runs 3)

"$py" - "$out" <<'P'
import json, os, sys
out = sys.argv[1]
read = lambda name: json.load(open(f"{out}/{name}.json"))["phases"] if os.path.exists(f"{out}/{name}.json") else {}
ours, peer = read("ours"), {**read("peer-sends"), **read("peer-send8"), **read("peer-1k"), **read("peer-10k")}
print("| | posthaste | mcp-agent-mail 0.1.0 | ratio |\n| --- | --- | --- | --- |")
def row(name, a, b, more_is_better): print(f"| {name} | {a} | {b} | {(a / b if more_is_better else b / a):.1f} |")
for phase in ("send1", "send8"):
    if phase not in peer:
        print(f"| {phase}, messages/s | {ours[phase]['per_s']} | no answer in time | |")
        continue
    row(f"{phase}, messages/s", ours[phase]["per_s"], peer[phase]["per_s"], True)
    row(f"{phase}, p99 ms", ours[phase]["p99_ms"], peer[phase]["p99_ms"], False)
    row(f"{phase}, server CPU ms", ours[phase]["server_cpu_ms_per_op"], peer[phase]["server_cpu_ms_per_op"], False)
for phase in ("inbox1k.limit20", "inbox10k.limit20", "inbox10k.limit100_bodies"):
    row(f"{phase}, p50 ms", ours[phase]["p50_ms"], peer[phase]["p50_ms"], False)
    row(f"{phase}, p99 ms", ours[phase]["p99_ms"], peer[phase]["p99_ms"], False)
row("memory, MiB, idle", ours["idle"]["proc"]["rss_mb"], peer["idle"]["proc"]["rss_mb"], False)
row("memory, MiB, at 10 k", ours["inbox10k.limit20"]["proc"]["rss_mb"], peer["inbox10k.limit20"]["proc"]["rss_mb"], False)
P
echo "results: $out"
