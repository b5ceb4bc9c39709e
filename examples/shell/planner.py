#!/usr/bin/env python3
"""Plans work over MAP: assigns by POST /map/rpc, receives results by server-sent events. Standard library only.

    planner.py URL TOKEN COUNT      (the token must be for an agent called planner)
"""
import json
import sys
import urllib.request

url, token, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


def ask(path, body=None):
    request = urllib.request.Request(url + path, data=body, headers={"Authorization": f"Bearer {token}"})
    return urllib.request.urlopen(request, timeout=60)


def call(method, params):
    with ask("/map/rpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()) as answer:
        answer = json.load(answer)
    if "error" in answer:
        sys.exit(f"planner: {method} was refused: {answer['error']}")
    return answer["result"]


# Subscribe before sending, so that no result is missed; the first line confirms the subscription.
events = ask("/map/events?eventTypes=message_sent")
events.readline()

expected = {}
for n in range(1, count + 1):
    subject, text = f"Bead gt-{n}", f"say \"hello\" {n} times\nand count them"
    assignment = {"type": "work_assignment", "subject": subject, "body": text}
    sent = call("map/send", {"to": {"agent": "worker-1"}, "payload": assignment, "meta": {"delivery": "guaranteed"}})
    assert sent["receipts"][0]["agentId"] == "worker-1", sent
    expected[subject] = "passed: " + text.upper()

for line in events:
    if not line.startswith(b"data:"):
        continue
    message = json.loads(line[5:])["event"]["data"]["message"]
    if message["from"] != "reviewer-1":
        continue
    report = message["payload"]
    print(f"planner: {report['subject']}: {report['body']!r}", flush=True)
    wanted = expected.pop(report["subject"])
    if report["type"] != "completion_report" or report["body"] != wanted:
        sys.exit(f"planner: expected {wanted!r}")
    if not expected:
        break
print("planner: all work is done")
