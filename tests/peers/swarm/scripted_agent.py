"""A scripted agent as a program: JSON lines on standard input and output around behaviour.decide().

in:  {"id": 1, "agent": "worker", "boss": "supervisor", "can_complete_tasks": false,
      "inbox": [MAILMessage...], "tool_results": [{"call_id", "content"}], "resumed": false}
out: {"id": 1, "calls": [{"call_id": "...", "tool": "send_response", "args": {...}}]}
"""

import asyncio
import json
import sys
import uuid

from behaviour import decide


def entry_of(mail):
    message = mail["message"]
    return {
        "stype": message["sender"]["address_type"],
        "sender": message["sender"]["address"],
        "subject": message["subject"],
        "body": message["body"],
        "kind": mail["msg_type"],
    }


async def answer(request):
    results = request.get("tool_results") or []
    delay, calls = decide(
        {
            "self": request["agent"],
            "boss": request.get("boss", "supervisor"),
            "is_boss": bool(request.get("can_complete_tasks")),
            "inbox": [entry_of(mail) for mail in request["inbox"]],
            "tool_result": results[-1]["content"] if results else None,
            "resumed": bool(request.get("resumed")),
        }
    )
    if delay:
        await asyncio.sleep(delay)
    with_ids = [{"call_id": "call_" + uuid.uuid4().hex[:12], **call} for call in calls]
    print(json.dumps({"id": request["id"], "calls": with_ids}), flush=True)


async def main():
    reader = asyncio.StreamReader(limit=1 << 26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    turns = set()
    while line := await reader.readline():
        turn = asyncio.create_task(answer(json.loads(line)))
        turns.add(turn)
        turn.add_done_callback(turns.discard)
    if turns:
        await asyncio.gather(*turns)


if __name__ == "__main__":
    asyncio.run(main())
