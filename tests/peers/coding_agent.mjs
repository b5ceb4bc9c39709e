// A coding agent as its client would start it: reads `.mcp.json`, starts or calls the server named there with the environment's
// variables filled in, opens a session in DIRECTORY and writes to each RECIPIENT.
//   node coding_agent.mjs .mcp.json DIRECTORY RECIPIENT...
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [file, directory, ...recipients] = process.argv.slice(2);
const filled = readFileSync(file, 'utf8').replace(/\$\{(\w+)(?::-([^}]*))?\}/g, (all, name, fallback) => {
  const value = process.env[name] ?? fallback;
  if (value === undefined) throw new Error(`${file} needs the variable ${name}`);
  return value;
});
const server = JSON.parse(filled).mcpServers.posthaste;
const transport = server.command
  ? new StdioClientTransport({ command: server.command, args: server.args ?? [], env: { ...process.env, ...server.env }, cwd: directory, stderr: 'inherit' })
  : new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: server.headers ?? {} } });
const client = new Client({ name: 'coding-agent', version: '1.0.0' });
await client.connect(transport);
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) throw new Error(`${name}: ${result.content[0]?.text}`);
  return result.structuredContent.result ?? result.structuredContent;
};
const session = await call('macro_start_session', { human_key: directory, program: 'test', model: 'none' });
await call('send_message', {
  project_key: directory,
  sender_name: session.agent.name,
  to: recipients,
  subject: `Hello from ${directory}`,
  body_md: `Hello from ${directory}`,
});
console.log(`${session.agent.name} wrote to ${recipients.join(' and ')}`);
await client.close();
