// The MAP checks, against running servers.
//
//   node main.mjs ws://HOST:PORT/map [--only=REGEX] [--wait=MS] [--quiet=MS] [--limit=MS]
//
// Environment: MAP_NOMAIL_URL, a server with mail turned off; MAP_AUTH_URL and MAP_AUTH_TOKEN, a server that requires a token;
// MAP_VERBOSE, to see what the SDK logs. ../run starts all three servers.
import { runChecks } from './harness.mjs';

for (const area of [
  'rpc',
  'connection',
  'agents',
  'send',
  'scopes',
  'events',
  'replay',
  'permissions',
  'mail',
  'mail_errors',
  'mail_visibility',
  'mail_messages',
  'draft',
  'http',
  'federation',
]) {
  await import(`./checks/${area}.mjs`);
}
await runChecks();
