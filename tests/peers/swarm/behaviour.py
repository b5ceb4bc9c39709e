"""How a scripted agent behaves: a pure function that the expectations of the checks rest on.

decide(turn) -> (delay in seconds, [{"tool": name, "args": {...}}, ...])

turn = {
  "self":        name of the agent, such as "worker"
  "boss":        name of the swarm's supervisor
  "is_boss":     True if this agent may complete tasks
  "inbox":       every message that this agent was given in this task, oldest first, as the *server* keeps them, which is what the
                 checks of histories look at: {"stype": user|admin|agent|system, "sender", "subject", "body",
                 "kind": request|response|broadcast|interrupt}
  "tool_result": text of the latest result of an action or a breakpoint tool, or None
  "resumed":     True if the agent is woken by the result of a breakpoint tool and there is no new message
}

A body that is a JSON object with `calls` is a script: the agent makes these calls, with {{self}}, {{sender}}, {{subject}},
{{turn}}, {{first}} and {{prev}} replaced.
"""

import json


def script_of(text):
    """The script that a text is, or None."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("calls"), list) else None


def substitute(value, names):
    if isinstance(value, str):
        if script_of(value):  # a script for the next agent, which is passed on unchanged
            return value
        for name, text in names.items():
            value = value.replace("{{" + name + "}}", text)
        return value
    if isinstance(value, dict):
        return {key: substitute(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, names) for item in value]
    return value


def decide(turn):
    me, boss, is_boss = turn["self"], turn.get("boss", "supervisor"), turn["is_boss"]
    inbox, result = turn["inbox"], turn.get("tool_result")

    def call(tool, **args):
        return {"tool": tool, "args": args}

    def report(text):
        if is_boss:
            return [call("task_complete", finish_message=text)]
        return [call("send_response", target=boss, subject="Re: report", body=f"{me}|{text}")]

    if turn.get("resumed"):
        return 0.0, report(f"resumed|{result}")

    message = inbox[-1]
    sender, subject, body, kind = message["sender"], message["subject"], message["body"], message["kind"]

    if message["stype"] == "system":
        if subject.startswith("::action_complete"):
            return 0.0, report(f"action|{result}")
        return 0.0, report(f"system|{subject}|{body}")
    if subject.startswith("::"):
        if subject == "::task_complete::" and is_boss:
            return 0.0, [call("task_complete", finish_message=f"remote-done|{body}")]
        return 0.0, report(f"odd|{subject}|{body}")
    script = script_of(body)
    if script:
        names = {
            "self": me,
            "sender": sender,
            "subject": subject,
            "turn": str(len(inbox)),
            "first": inbox[0]["body"],
            "prev": inbox[-2]["body"] if len(inbox) > 1 else "",
        }
        calls = [{"tool": step["tool"], "args": substitute(step.get("args", {}), names)} for step in script["calls"]]
        return float(script.get("delay", 0)), calls
    if kind == "broadcast":
        return 0.0, [call("acknowledge_broadcast", note=body)]
    if is_boss:
        return 0.0, [call("task_complete", finish_message=body)]
    if kind == "response":
        return 0.0, [call("send_response", target=boss, subject=subject, body=f"{me}<{body}")]
    separator = "!" if kind == "interrupt" else ":"
    return 0.0, [call("send_response", target=sender, subject="Re: " + subject, body=f"{me}{separator}{body}")]
