"""The current MCP client (PyPI package `mcp` 2.x), with the newest protocol revision and with the older handshake.

python clients.py URL TOKEN
"""

import asyncio
import json
import sys
import uuid

import httpx2
from harness import Tally
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

CLIENT_SECONDS = 60


def value_of(result):
    if result.structured_content is not None:
        return result.structured_content
    return json.loads(result.content[0].text)


def rows_of(result):
    value = value_of(result)
    return value["result"] if isinstance(value, dict) and "result" in value else value


async def exchange(check, url, token, mode):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            expected = {"ensure_project", "register_agent", "send_message", "fetch_inbox"}
            check(f"{mode}: lists the tools", expected <= set(tools), tools[:8])
            project = f"/srv/{uuid.uuid4().hex[:8]}"
            await client.call_tool("ensure_project", {"human_key": project})
            profile = {"project_key": project, "program": "t", "model": "m"}
            a, b = [value_of(await client.call_tool("register_agent", profile))["name"] for _ in range(2)]
            check(f"{mode}: two agents get different names", a and b and a != b, (a, b))
            message = {"project_key": project, "sender_name": a, "to": [b], "subject": "hello", "body_md": "first message"}
            sent = await client.call_tool("send_message", message)
            check(f"{mode}: the first message is accepted", not sent.is_error, sent)
            fetch = {"project_key": project, "agent_name": b, "include_bodies": True}
            inbox = rows_of(await client.call_tool("fetch_inbox", fetch))
            arrived = [row["subject"] for row in inbox] == ["hello"] and inbox[0]["body_md"] == "first message"
            check(f"{mode}: the first message arrives", arrived, inbox)
            refused = await client.call_tool("send_message", {**message, "to": ["NoSuchAgent"]})
            check(f"{mode}: an unknown recipient is an error", refused.is_error, refused)


def main():
    url, token = sys.argv[1:3]
    tally = Tally()
    for mode in ("auto", "legacy"):
        try:
            asyncio.run(asyncio.wait_for(exchange(tally.check, url, token, mode), CLIENT_SECONDS))
        except Exception as error:
            tally.check(f"{mode}: the checks ran to their end", False, f"{type(error).__name__}: {error}")
    return tally.close()


sys.exit(main())
