"""The agents of ../swarm.json for the reference server: a factory of its swarm file, without any model.

They do what the office's own `script` agents do: make the calls that a message lists as {"calls": [{"tool", "args"}]}; without
such a list the supervisor completes the task with what it was told, and others answer, marked with their name.
"""
import json
import re
import uuid

from mail.core.tools import AgentToolCall

INCOMING = re.compile(r"<from[^>]*>(?P<sender>.*?)</from>.*?<subject>(?P<subject>.*?)</subject>\s*<body>(?P<body>.*)</body>", re.S)


def newest(history):
    for entry in reversed(history):
        if entry.get("role") == "user":
            found = INCOMING.search(entry["content"])
            if found:
                return [found[part].strip() for part in ("sender", "subject", "body")]
    raise ValueError("no message in the history")


def decide(name, is_boss, history):
    sender, subject, body = newest(history)
    try:
        script = json.loads(body)
    except ValueError:
        script = None
    if isinstance(script, dict) and isinstance(script.get("calls"), list):
        return [(call["tool"], call.get("args", {})) for call in script["calls"]]
    if is_boss:
        return [("task_complete", {"finish_message": body})]
    if subject.startswith("Re:"):
        return [("send_response", {"target": "supervisor", "subject": subject, "body": f"{name}<{body}"})]
    return [("send_response", {"target": sender, "subject": "Re: " + subject, "body": f"{name}:{body}"})]


def factory(name="agent", can_complete_tasks=False, **_):
    async def take(history, tool_choice="auto"):
        calls = []
        for tool, args in decide(name, can_complete_tasks, history):
            call_id = "call_" + uuid.uuid4().hex[:12]
            written = {"type": "function_call", "name": tool, "call_id": call_id, "arguments": json.dumps(args),
                       "id": "fc_" + call_id, "status": "completed"}
            calls.append(AgentToolCall(tool_name=tool, tool_args=args, tool_call_id=call_id, responses=[written]))
        return None, calls

    return take
