"""The two swarms of the checks, alpha and beta, as posthaste's swarm files."""

import sys

AGENTS = ("supervisor", "worker", "helper", "echo")
REMOTE_AGENTS = ("supervisor", "worker", "helper", "ghost")
#: Swarms that the checks host themselves, one that the published client hosts, and one that is registered late.
REMOTE_SWARMS = ("peer", "peer2", "probe", "nowhere")
ACTIONS = {
    "upper": "Return the text in upper case.",
    "boom": "Fail, on purpose.",
    "ask_human": "Ask a person; the task pauses until the answer comes.",
}


def program(name, *args):
    """A Python program in the folder of the swarm file."""
    return {"command": [sys.executable, "{here}/" + name, *args]}


def definition(name, other):
    """The swarm `name`, whose agents may also write to agents of the swarm `other`."""
    remote = [f"{agent}@{swarm}" for swarm in (other, *REMOTE_SWARMS) for agent in REMOTE_AGENTS]

    def agent(agent_name, targets, **abilities):
        return {"name": agent_name, "driver": program("scripted_agent.py"), "comm_targets": targets, **abilities}

    def abilities(entrypoint, complete, interswarm, actions):
        return {
            "enable_entrypoint": entrypoint,
            "can_complete_tasks": complete,
            "enable_interswarm": interswarm,
            "actions": actions,
        }

    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return {
        "name": name,
        "version": "1.3",
        "description": f"Scripted swarm {name} for the conformance checks",
        "keywords": ["conformance", "scripted"],
        "public": True,
        "enable_interswarm": True,
        "entrypoint": "supervisor",
        "breakpoint_tools": ["ask_human"],
        "agents": [
            agent("supervisor", ["worker", "helper", "echo", *remote], **abilities(True, True, True, list(ACTIONS))),
            agent("worker", ["supervisor", "helper", "echo", *remote], **abilities(False, False, True, ["upper"])),
            agent("helper", ["supervisor", "worker", *remote], **abilities(False, False, True, [])),
            agent("echo", ["supervisor"], **abilities(True, True, False, [])),
        ],
        "actions": [
            {
                "name": action,
                "description": description,
                "parameters": parameters,
                "driver": program("actions.py", action),
            }
            for action, description in ACTIONS.items()
        ],
    }
