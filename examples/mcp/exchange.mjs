// Two agents exchange a message through the official MCP SDK, over HTTP and over standard input and output.
//   node exchange.mjs http://127.0.0.1:7678/mcp [TOKEN]
//   node exchange.mjs stdio posthaste --data DIR mcp
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

const [where = 'http://127.0.0.1:7678/mcp', ...rest] = process.argv.slice(2);
const transport =
  where === 'stdio'
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), stderr: 'inherit' })
    : new StreamableHTTPClientTransport(new URL(where), {
        requestInit: { headers: rest[0] ? { Authorization: `Bearer ${rest[0]}` } : {} },
      });
const expect = (truth, what) => {
  if (!truth) throw new Error(`failed: ${what}`);
  console.log(`ok: ${what}`);
};

const client = new Client({ name: 'exchange', version: '1.0.0' });
await client.connect(transport);
const { tools } = await client.listTools();
expect(tools.some((tool) => tool.name === 'send_message'), `${tools.length} tools are listed, send_message among them`);

const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) throw new Error(result.content[0].text);
  return result.structuredContent.result ?? result.structuredContent;
};
const project = `/srv/exchange-${Date.now()}`;
const start = (agent_name) => call('macro_start_session', { human_key: project, program: 'example', model: 'none', agent_name });
const ann = (await start('BlueLake')).agent.name;
const bob = (await start(undefined)).agent.name;
expect(ann === 'BlueLake' && bob !== ann, `two agents: ${ann} and ${bob}`);

const inbox = `resource://inbox/${bob}?project=${project}`;
const told = new Promise((resolve) => {
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (note) => resolve(note.params.uri));
});
await client.subscribeResource({ uri: inbox });

const sent = await call('send_message', {
  project_key: project, sender_name: ann, to: [bob], subject: 'Hello', body_md: 'Is this **yours**?', ack_required: true,
});
const waited = await call('wait_for_mail', { project_key: project, agent_name: bob, timeout_seconds: 10 });
const [message] = waited.messages;
expect(message.id === sent.deliveries[0].payload.id && message.body_md === 'Is this **yours**?', 'the message arrives');
const late = new Promise((_, reject) => setTimeout(() => reject(new Error('no notification within 10 s')), 10_000).unref());
expect((await Promise.race([told, late])) === inbox, 'a notification says that the inbox has changed');

await call('acknowledge_message', { project_key: project, agent_name: bob, message_id: message.id });
const answer = await call('reply_message', { project_key: project, sender_name: bob, message_id: message.id, body_md: 'Mine, thanks.' });
const back = await call('fetch_inbox', { project_key: project, agent_name: ann, include_bodies: true });
expect(back[0].id === answer.id && back[0].subject === 'Re: Hello', 'the answer comes back in the same thread');
const read = await client.readResource({ uri: `resource://thread/${message.id}?project=${project}&include_bodies=true` });
expect(JSON.parse(read.contents[0].text).messages.length === 2, 'the thread has both');
const { prompts } = await client.listPrompts();
expect(prompts.length > 0, `${prompts.length} prompts are listed`);
const bad = await client.callTool({ name: 'send_message', arguments: { project_key: project, sender_name: ann, to: ['BobLake'], subject: 's', body_md: 'b' } });
expect(bad.isError && bad.structuredContent.error.code === 'AGENT_NOT_FOUND', 'an unknown name is refused with a code');
await client.close();
