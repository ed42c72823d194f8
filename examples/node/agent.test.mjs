import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { script, tools } from './agent.mjs';
import { Engine, PtcError } from './ptc.mjs';

const nothing = { type: 'object', properties: {} };
const anything = { type: 'object', properties: { value: {} } };
const tool = (call, inputSchema = nothing) => ({ inputSchema, call });
const SLEEPS = "print('ready')\nimport time\ntime.sleep(1000)\n";

async function withEngine(work, further = {}, config = {}) {
  const engine = new Engine({ ...config, tools: { ...tools, ...further } });
  try {
    await work(engine);
  } finally {
    await engine.close();
  }
}

/** Runs node and gives what it printed and how it ended; `started` gets the process. */
function node(args, started = () => {}) {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, (error, stdout, stderr) => {
      resolve({ stdout, stderr, code: error ? error.code : 0, signal: error?.signal ?? null });
    });
    started(child);
  });
}

const here = (file) => fileURLToPath(new URL(file, import.meta.url));

function withFolder(work) {
  const folder = mkdtempSync(join(tmpdir(), 'ptc-node-'));
  return Promise.resolve(work(folder)).finally(() => rmSync(folder, { recursive: true }));
}

test('success', () => withEngine(async (engine) => {
  const result = await engine.execute(script);
  assert.equal(result.status, 'success');
  assert.match(result.output, /https:\/\/example.org\/three 8 words\n$/);
  assert.equal(result.tool_calls_made, 6);
}));

test('a script that fails', () => withEngine(async (engine) => {
  const result = await engine.execute('print("so far")\n1 / 0\n');
  assert.equal(result.status, 'error');
  assert.equal(result.exit_code, 1);
  assert.equal(result.error, 'ZeroDivisionError: division by zero');
}));

test('a tool that fails, at once or later', () => withEngine(async (engine) => {
  const code = 'from hermes_tools import fetch_page, throws\nprint(fetch_page("missing"))\nprint(throws())\n';
  const result = await engine.execute(code);
  assert.equal(result.output, "{'error': '404: there is no page missing'}\n{'error': 'on purpose'}\n");
}, { throws: tool(() => { throw new Error('on purpose'); }) }));

test('whatever a tool throws reaches the script', async () => {
  const thrown = ['words', new TypeError(), undefined, null, 7, Symbol('s'), Object.create(null), { message: 5 }];
  await withEngine(async (engine) => {
    const code = 'from hermes_tools import throws\nfor i in range(8):\n    print(throws(i)["error"])\n';
    const lines = (await engine.execute(code)).output.split('\n');
    assert.deepEqual(lines.slice(0, 6), ['words', 'TypeError', 'undefined', 'null', '7', 'Symbol(s)']);
    assert.equal(lines.length, 9);
  }, { throws: tool(({ value }) => { throw thrown[value]; }, anything) });
});

test('a result that JSON does not know is null or a failed call', async () => {
  const given = [undefined, () => 1, Symbol('s'), 10n, NaN];
  await withEngine(async (engine) => {
    const code = 'from hermes_tools import give\nfor i in range(5):\n    print(give(i))\n';
    const lines = (await engine.execute(code)).output.split('\n');
    assert.deepEqual([...lines.slice(0, 3), lines[4]], ['None', 'None', 'None', 'None']);
    assert.match(lines[3], /^{'error': .*BigInt/);
  }, { give: tool(({ value }) => given[value], anything) });
});

test('timeout', () => withEngine(async (engine) => {
  const result = await engine.execute(SLEEPS, { timeout: 3 });
  assert.equal(result.status, 'timeout');
  assert.match(result.output, /^(ready\n)?Script timed out after 3s and was killed\.$/); // on a busy machine it may be early
}));

test('cancellation', () => withEngine(async (engine) => {
  const abort = new AbortController();
  const result = await engine.execute(SLEEPS, { signal: abort.signal, onStdout: () => abort.abort() });
  assert.equal(result.status, 'interrupted');
  assert.equal(result.output, 'ready\n[execution interrupted - user sent a new message]');
}));

test('cancellation in words', () => withEngine(async (engine) => {
  const abort = new AbortController();
  const result = await engine.execute(SLEEPS, { signal: abort.signal, onStdout: () => abort.abort('out of budget') });
  assert.equal(result.output, 'ready\n[execution interrupted - out of budget]');
}));

test('cancellation before the start', () => withEngine(async (engine) => {
  const result = await engine.execute(SLEEPS, { signal: AbortSignal.abort() });
  assert.equal(result.status, 'interrupted');
}));

test('tools are told when their run has ended', async () => {
  let told;
  const abort = new AbortController();
  const waits = tool((_, { signal }) => new Promise(() => {
    told = once(signal, 'abort');
    abort.abort();
  }));
  await withEngine(async (engine) => {
    const result = await engine.execute('from hermes_tools import waits\nwaits()', { signal: abort.signal });
    assert.equal(result.status, 'interrupted');
    assert.equal(result.tool_calls[0].state, 'unanswered');
    await told;
  }, { waits });
});

test('two runs at once', async () => {
  const waiting = [];
  const meet = tool(({ value }) => new Promise((resolve) => {
    waiting.push({ value, resolve });
    if (waiting.length === 2) waiting.forEach(({ resolve }, i) => resolve(`met ${waiting[1 - i].value}`));
  }), anything);
  await withEngine(async (engine) => {
    const run = (name) => engine.execute(`from hermes_tools import meet\nprint(meet("${name}"))`);
    const results = await Promise.all([run('a'), run('b')]);
    assert.deepEqual(results.map((result) => result.output), ['met b\n', 'met a\n']);
  }, { meet });
});

test('the event loop goes on while a script waits for a tool that needs it', async () => {
  const turns = tool(async ({ value }) => {
    for (let i = 0; i < value; i++) await new Promise((resolve) => setImmediate(resolve));
    await sleep(1);
    return 'turned';
  }, anything);
  await withEngine(async (engine) => {
    assert.equal((await engine.execute('from hermes_tools import turns\nprint(turns(1000))')).output, 'turned\n');
  }, { turns });
});

test('the event loop goes on while a script floods', () => withEngine(async (engine) => {
  let bytes = 0;
  let ticks = 0;
  const ticker = setInterval(() => ticks++, 1);
  const code = 'import sys\nfor i in range(20000):\n    sys.stdout.write("x" * 999 + "\\n")\n';
  const result = await engine.execute(code, { onStdout: (chunk) => { bytes += chunk.length; } });
  clearInterval(ticker);
  assert.equal(result.stdout_bytes, 20_000_000);
  assert.ok(bytes > 0);
  assert.ok(ticks >= 10, `${ticks} ticks`);
}));

test('the event loop goes on while an engine closes, and its runs end', async () => {
  const engine = new Engine({ code_execution: { kill_grace: 1 } });
  const stubborn = 'import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint("ready")\ntime.sleep(1000)\n';
  let ticks = 0;
  let ticker;
  const closed = new Promise((resolve) => {
    engine.execute(stubborn, {
      onStdout() {
        ticker = setInterval(() => ticks++, 1);
        resolve(engine.close());
      },
    }).then((result) => { assert.equal(result.status, 'interrupted'); });
  });
  await closed;
  await engine.close();
  clearInterval(ticker);
  assert.ok(ticks >= 10, `${ticks} ticks`);
  await assert.rejects(engine.execute('pass'), /the engine is closed/);
  assert.throws(() => engine.definition('text'), /the engine is closed/);
});

test('a listener that throws ends the run', () => withEngine(async (engine) => {
  const onStdout = () => { throw new Error('disk full'); };
  await assert.rejects(engine.execute(SLEEPS, { onStdout }), /disk full/);
}));

test('output as it comes', () => withEngine(async (engine) => {
  const seen = { out: [], err: [] };
  const code = 'import os\nos.write(1, b"a\\x00\\xff")\nos.write(2, b"b")\n';
  await engine.execute(code, { onStdout: (chunk) => seen.out.push(chunk), onStderr: (chunk) => seen.err.push(chunk) });
  assert.deepEqual(Buffer.concat(seen.out), Buffer.from([0x61, 0, 0xff]));
  assert.deepEqual(Buffer.concat(seen.err), Buffer.from('b'));
}));

test('any text goes in and out as it is', () => withEngine(async (engine) => {
  const code = 'from hermes_tools import echo\nt = "\\0 \\n ä 🎉 \\u2028" * 1000\nassert echo(t) == t\nprint("a\\0b same")\n';
  assert.equal((await engine.execute(code)).output, 'a\0b same\n');
}, { echo: tool(({ value }) => value, anything) }));

test('many calls at once are no leak', async () => {
  const warnings = [];
  const warn = (warning) => warnings.push(warning);
  process.on('warning', warn);
  await withEngine(async (engine) => {
    const code = 'from hermes_tools import parallel, fetch_page\nprint(len(parallel(fetch_page, ["x"] * 40)))\n';
    assert.equal((await engine.execute(code)).output, '40\n');
  });
  process.off('warning', warn);
  assert.deepEqual(warnings, []);
});

test('errors name their place', () => withEngine(async (engine) => {
  assert.throws(() => new Engine({ code_execution: { timeout: '5m' } }), /code_execution\.timeout/);
  await assert.rejects(engine.execute('pass', { mode: 'loose' }), (error) => error instanceof PtcError && error.code === 2);
  await assert.rejects(engine.execute(''), (error) => error instanceof PtcError && error.code === 1);
}));

test('definition', () => withEngine(async (engine) => {
  assert.match(engine.definition('text'), /word_count\(text: str\)/);
  assert.match(engine.definition('text'), /web_search\(query: str/);
  assert.equal(engine.definition('anthropic').name, 'execute_code');
}, { web_search: { call: () => null } }));

test('in a worker thread', async () => {
  const code = `
    const { parentPort } = require('node:worker_threads');
    Promise.all([import(${JSON.stringify(new URL('ptc.mjs', import.meta.url).href)}),
                 import(${JSON.stringify(new URL('agent.mjs', import.meta.url).href)})])
      .then(async ([{ Engine }, { tools, script }]) => {
        const engine = new Engine({ tools });
        parentPort.postMessage((await engine.execute(script)).status);
        await engine.close();
      });`;
  const work = async (worker) => {
    const [[status], [exitCode]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')]);
    return [status, exitCode];
  };
  const ended = await Promise.all([1, 2].map(() => work(new Worker(code, { eval: true }))));
  assert.deepEqual(ended, [['success', 0], ['success', 0]]);
});

test('the agent prints the result of its own script and of a given one', () => withFolder(async (folder) => {
  const own = await node([here('agent.mjs')]);
  assert.deepEqual([own.code, own.stderr], [0, '']);
  assert.match(own.stdout, /https:\/\/example.org\/one 8 words\n/);
  const file = join(folder, 'script.py');
  writeFileSync(file, 'print("given")\nraise SystemExit(3)\n');
  const given = await node([here('agent.mjs'), file]);
  assert.equal(given.code, 1);
  assert.match(given.stdout, /^given\n/);
}));

test('Ctrl-C cancels the agent', () => withFolder(async (folder) => {
  const ready = net.createServer().listen(join(folder, 'ready'));
  const file = join(folder, 'script.py');
  writeFileSync(file, `import socket, time\nsocket.socket(socket.AF_UNIX).connect(${JSON.stringify(join(folder, 'ready'))})\ntime.sleep(1000)\n`);
  const ended = node([here('agent.mjs'), file], (child) => {
    ready.once('connection', (connection) => {
      connection.destroy();
      child.kill('SIGINT');
    });
  });
  const { stdout, code } = await ended;
  ready.close();
  assert.equal(stdout, '[execution interrupted - user sent a new message]\n');
  assert.equal(code, 1);
}));

test('a host that exits in the middle of a run, or waits for nothing, does not crash', async () => {
  const host = (then) => node(['--input-type=module', '-e', `
    import { Engine } from ${JSON.stringify(new URL('ptc.mjs', import.meta.url).href)};
    const engine = new Engine();
    ${then}`]);
  const exits = await host(`engine.execute(${JSON.stringify(SLEEPS)}, { onStdout: () => process.exit(7) });`);
  assert.deepEqual(exits, { stdout: '', stderr: '', code: 7, signal: null });
  const falls = await host(`engine.execute('print(1)').then((result) => console.log(result.status));`);
  assert.deepEqual(falls, { stdout: 'success\n', stderr: '', code: 0, signal: null });
});

const count = (folder) => readdirSync(`/proc/self/${folder}`).length;

test('200 runs leave no descriptor, no thread and no memory', { skip: process.platform !== 'linux' }, async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const echo = tool(({ value }) => value, anything);
  const whole = 'from hermes_tools import echo\nfor _ in range(2):\n    echo("x" * 500_000)\nprint("y" * 40_000)\n';
  const kinds = [
    (engine) => engine.execute(whole),
    (engine) => engine.execute(whole, { onStdout() {} }),
    (engine) => engine.execute(SLEEPS, { signal: AbortSignal.abort() }),
    (engine) => engine.execute(SLEEPS, { onStdout() { throw new Error('on purpose'); } }).catch(() => null),
    (engine) => engine.execute('', {}).catch(() => null),
  ];
  const round = async (runs) => {
    await withEngine(async (engine) => {
      for (let i = 0; i < runs; i += 5) await Promise.all(kinds.map((run) => run(engine)));
    }, { echo });
    collect();
    return { descriptors: count('fd'), threads: count('task'), memory: process.memoryUsage().rss };
  };
  const before = await round(50);
  const after = await round(200);
  assert.equal(after.descriptors, before.descriptors);
  assert.equal(after.threads, before.threads);
  const grown = (after.memory - before.memory) / 2 ** 20;
  assert.ok(grown < 60, `${grown} MiB more`); // the arguments and answers of the calls alone are 160 MB
});
