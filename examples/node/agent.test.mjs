import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { script, tools } from './agent.mjs';
import { Engine, PtcError } from './ptc.mjs';

async function withEngine(work, further = {}) {
  const engine = new Engine({ tools: { ...tools, ...further } });
  try {
    await work(engine);
  } finally {
    await engine.close();
  }
}

const nothing = { type: 'object', properties: {} };

test('success', () => withEngine(async (engine) => {
  const result = await engine.execute(script);
  assert.equal(result.status, 'success');
  assert.match(result.output, /https:\/\/example.org\/three 8 words\n$/);
  assert.equal(result.tool_calls_made, 6);
}));

test('a tool that fails', () => withEngine(async (engine) => {
  const code = 'from hermes_tools import fetch_page, throws\nprint(fetch_page("missing"))\nprint(throws())\n';
  const result = await engine.execute(code);
  assert.equal(result.output, "{'error': '404: there is no page missing'}\n{'error': 'on purpose'}\n");
}, { throws: { inputSchema: nothing, call() { throw new Error('on purpose'); } } }));

test('timeout', () => withEngine(async (engine) => {
  const result = await engine.execute("print('begun')\nimport time\ntime.sleep(1000)\n", { timeout: 3 });
  assert.equal(result.status, 'timeout');
  assert.equal(result.output, 'begun\nScript timed out after 3s and was killed.');
}));

test('cancellation', () => withEngine(async (engine) => {
  const abort = new AbortController();
  const code = "print('ready')\nimport time\ntime.sleep(1000)\n";
  const result = await engine.execute(code, { signal: abort.signal, onStdout: () => abort.abort() });
  assert.equal(result.status, 'interrupted');
  assert.equal(result.output, 'ready\n[execution interrupted - user sent a new message]');
  const before = await engine.execute(code, { signal: AbortSignal.abort() });
  assert.equal(before.status, 'interrupted');
}));

test('tools are told when their run has ended', async () => {
  let told;
  const abort = new AbortController();
  const waits = {
    inputSchema: nothing,
    call: (_, { signal }) => new Promise((resolve) => {
      told = new Promise((tell) => signal.addEventListener('abort', tell));
      abort.abort();
    }),
  };
  await withEngine(async (engine) => {
    const result = await engine.execute('from hermes_tools import waits\nwaits()', { signal: abort.signal });
    assert.equal(result.status, 'interrupted');
    await told;
  }, { waits });
});

test('many at once, and the event loop goes on', () => withEngine(async (engine) => {
  let ticks = 0;
  const ticker = setInterval(() => ticks++, 1);
  const results = await Promise.all(Array.from({ length: 8 }, () => engine.execute(script)));
  clearInterval(ticker);
  assert.ok(results.every((result) => result.status === 'success'));
  assert.ok(ticks > 8, `${ticks} ticks`);
}));

test('any text goes in and out as it is', () => withEngine(async (engine) => {
  const code = 'from hermes_tools import echo\nt = "\\0 \\n ä 🎉 \\u2028" * 1000\nassert echo(t=t) == t\nprint("same")\n';
  assert.equal((await engine.execute(code)).output, 'same\n');
}, { echo: { inputSchema: { type: 'object', properties: { t: {} } }, call: ({ t }) => t } }));

test('errors name their place', () => withEngine(async (engine) => {
  assert.throws(() => new Engine({ code_execution: { timeout: '5m' } }), /code_execution\.timeout/);
  await assert.rejects(engine.execute('pass', { mode: 'loose' }), (error) => error instanceof PtcError && error.code === 2);
}));

test('definition', () => withEngine(async (engine) => {
  assert.match(engine.definition('text'), /word_count/);
  assert.equal(engine.definition('anthropic').name, 'execute_code');
}));

test('nothing is left', { skip: process.platform !== 'linux' }, () => withEngine(async (engine) => {
  const descriptors = () => readdirSync('/proc/self/fd').length;
  await engine.execute('pass');
  const before = descriptors();
  for (let i = 0; i < 20; i++) await engine.execute('pass');
  assert.ok(descriptors() <= before + 2, `${before} descriptors before, ${descriptors()} after`);
}));
