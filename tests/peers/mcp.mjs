// The official MCP conformance suite against posthaste, for each revision that posthaste speaks.
//
//   node tests/peers/mcp.mjs BIN DIRECTORY [--install]
//
// BIN is the built program; the suite is in DIRECTORY, or installed there with --install. Every check must pass, except those in mcp-needs.txt:
// they need a tool, prompt or resource that the suite expects of a server made for it. The list is checked, too.
// Exit codes: 0 all is well, 1 a check failed, 2 wrong usage, 77 the suite is not installed (nothing was tested).

import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const REVISIONS = ['2025-06-18', '2025-11-25', '2026-07-28'];
/** The suite needs this version of Node.js; where an older one is installed, npm has the program itself as a package. */
const NODE_MAJOR = 22;
const NODE_PACKAGE = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
const NODE_VERSION = '24.21.0';
/** Milliseconds that one installation, and the whole run, may take. */
const INSTALL_TIME = 50_000;
const WHOLE_TIME = 110_000;

const start = Date.now();
const timeLeft = () => Math.max(1, WHOLE_TIME - (Date.now() - start));

const here = dirname(fileURLToPath(import.meta.url));

class Skipped extends Error {}

/** Installs the pinned suite unless it is there, and returns the command line that starts it. */
function install(directory) {
  mkdirSync(directory, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
  const [[name, version]] = Object.entries(manifest.dependencies);
  const suite = join(directory, 'node_modules', name);
  const installed = () => existsSync(join(suite, 'package.json')) && JSON.parse(readFileSync(join(suite, 'package.json'), 'utf8')).version;
  if (installed() !== version) {
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(here, file), join(directory, file));
    npm(directory, ['ci']);
  }
  let node = process.execPath;
  if (Number(process.versions.node.split('.')[0]) < NODE_MAJOR) {
    const own = join(directory, 'node');
    node = join(own, 'node_modules', NODE_PACKAGE, 'bin', 'node');
    if (!existsSync(node)) {
      mkdirSync(own, { recursive: true });
      npm(own, ['install', '--prefix', own, `${NODE_PACKAGE}@${NODE_VERSION}`]);
    }
  }
  return { node, main: join(suite, 'dist', 'index.js'), version };
}

function npm(directory, args) {
  if (!process.argv.includes('--install')) throw new Skipped(`npm ${args.join(' ')} is needed in ${directory}: --install does it`);
  const flags = ['--loglevel=error', '--no-fund', '--no-audit', '--ignore-scripts', '--engine-strict=false'];
  const ran = spawnSync('npm', [...args, ...flags], { cwd: directory, encoding: 'utf8', timeout: INSTALL_TIME });
  if (ran.status === 0) return;
  const said = ran.stderr?.split('\n').find((line) => /^npm (error|ERR!) (?!code|errno|syscall)/.test(line));
  throw new Skipped(`npm ${args.join(' ')}: ${ran.error?.message ?? said ?? `exit code ${ran.status}`}`);
}

/** Starts a server with a data directory of its own. */
async function serve(bin, data) {
  const child = spawn(bin, ['serve', '--data', data, '--listen', '127.0.0.1:0', '--no-auth', '--log-level', 'warn'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: data,
  });
  let out = '';
  let log = '';
  child.stderr.on('data', (chunk) => (log += chunk));
  const url = await new Promise((found, failed) => {
    child.stdout.on('data', (chunk) => {
      out += chunk;
      const ready = out.match(/^ready (\S+)$/m);
      if (ready) found(ready[1]);
    });
    child.once('error', failed);
    child.once('exit', (code) => failed(new Error(`the server ended with ${code}: ${log}`)));
  });
  const stop = () =>
    new Promise((done) => {
      const end = () => done({ code: child.exitCode, log });
      if (child.exitCode !== null || child.signalCode !== null) return end();
      child.once('exit', end);
      child.kill('SIGTERM');
    });
  return { url: `${url}/mcp`, stop };
}

/** Everything that the server has by name, as text: a check in the list must not need any of it. */
async function inventory(url) {
  const methods = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];
  const answers = methods.map(async (method, id) => {
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id, method }) });
    return JSON.stringify((await answer.json()).result);
  });
  return (await Promise.all(answers)).join('\n');
}

/** The list: `scenario check fixture` in each line, `-` for a scenario in which nothing is checked without its fixture. */
function needs() {
  const entries = new Map();
  for (const [index, line] of readFileSync(join(here, 'mcp-needs.txt'), 'utf8').split('\n').entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const words = line.trim().split(/\s+/);
    const key = `${words[0]} ${words[1]}`;
    if (words.length !== 3 || entries.has(key)) throw new Error(`mcp-needs.txt:${index + 1}: "scenario check fixture", once each`);
    entries.set(key, { fixture: words[2], ran: false });
  }
  return entries;
}

/** The scenarios that the suite has for a revision. */
function scenarios(suite, revision) {
  const ran = spawnSync(suite.node, [suite.main, 'list', '--server'], { encoding: 'utf8', timeout: timeLeft() });
  const lines = [...(ran.stdout ?? '').matchAll(/^\s*- (\S+) \[([^\]]+)\]$/gm)];
  return lines.filter(([, , revisions]) => revisions.split(',').includes(revision)).map(([, name]) => name);
}

/** Runs the suite for a revision: the checks of each scenario. */
function run(suite, url, revision, results) {
  const args = [suite.main, 'server', '--url', url, '--suite', 'all', '--spec-version', revision, '-o', results];
  const ran = spawnSync(suite.node, args, { encoding: 'utf8', timeout: timeLeft() });
  if (ran.error) throw new Error(`the suite did not end for ${revision}: ${ran.error.message}`);
  const found = new Map();
  for (const name of existsSync(results) ? readdirSync(results) : []) {
    const scenario = name.match(/^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/)?.[1];
    const file = join(results, name, 'checks.json');
    if (scenario && existsSync(file)) found.set(scenario, JSON.parse(readFileSync(file, 'utf8')));
  }
  return found;
}

/** What is wrong with a revision's results. Marks the entries of the list that were met. */
function judge(revision, expected, found, list, notes) {
  const problems = [];
  const count = { SUCCESS: 0, listed: 0 };
  const bad = (scenario, check, why) => {
    const entry = list.get(`${scenario} ${check}`);
    if (entry) {
      entry.ran = true;
      count.listed += 1;
    } else {
      problems.push(`${revision} ${scenario} ${check}: ${why}`);
    }
  };
  if (expected.length === 0) problems.push(`${revision}: the suite has no scenarios for it`);
  for (const scenario of expected) {
    const checks = found.get(scenario) ?? [];
    if (!checks.some((check) => check.status === 'SUCCESS')) bad(scenario, '-', 'nothing was checked');
    for (const check of checks) {
      if (check.status === 'SUCCESS') {
        count.SUCCESS += 1;
        const entry = list.get(`${scenario} ${check.id}`);
        if (entry && !checks.some((other) => other.id === check.id && other.status !== 'SUCCESS')) {
          entry.ran = true;
          notes.push(`${revision} ${scenario} ${check.id} passes now; take it off mcp-needs.txt`);
        }
      } else if (check.status === 'FAILURE' || check.status === 'WARNING') {
        bad(scenario, check.id, check.errorMessage ?? check.status);
      }
    }
  }
  console.log(`${revision}: ${expected.length} scenarios, ${count.SUCCESS} checks passed, ${count.listed} need the suite's own fixtures`);
  return problems;
}

async function main(bin, directory) {
  const suite = install(resolve(directory));
  const work = mkdtempSync(join(tmpdir(), 'posthaste-peers-'));
  const list = needs();
  const problems = [];
  const notes = [];
  try {
    const server = await serve(resolve(bin), work);
    try {
      const has = await inventory(server.url);
      for (const [key, { fixture }] of list) {
        if (has.includes(`"${fixture}"`)) problems.push(`mcp-needs.txt: ${key}: the server has ${fixture}; take it off the list`);
      }
      for (const revision of REVISIONS) {
        const found = run(suite, server.url, revision, join(work, `results-${revision}`));
        problems.push(...judge(revision, scenarios(suite, revision), found, list, notes));
      }
    } finally {
      const { code, log } = await server.stop();
      if (code !== 0) problems.push(`the server ended with ${code}: ${log}`);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  for (const [key, { ran }] of list) if (!ran) notes.push(`${key} is in mcp-needs.txt, but ${suite.version} has no such check`);
  for (const note of notes) console.log(`note: ${note}`);
  for (const problem of problems) console.error(`failed: ${problem}`);
  return problems.length === 0 ? 0 : 1;
}

const [bin, directory] = process.argv.slice(2);
if (!bin || !directory) {
  console.error('usage: node tests/peers/mcp.mjs BIN DIRECTORY');
  process.exitCode = 2;
} else {
  try {
    process.exitCode = await main(bin, directory);
  } catch (error) {
    console.error(error instanceof Skipped ? `skipped: ${error.message}` : `failed: ${error.message}`);
    process.exitCode = error instanceof Skipped ? 77 : 1;
  }
}
