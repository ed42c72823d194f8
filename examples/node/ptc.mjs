// ptc for Node: a model's Python script calls functions of this process.
//
// Events are pulled when the run's descriptor says so, so that no callback enters JavaScript from a foreign thread and no
// call into the library ever blocks the event loop.
import koffi from 'koffi';
import { setMaxListeners } from 'node:events';
import { existsSync } from 'node:fs';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import util from 'node:util';

const ABI_VERSION = 1; // of the header that the signatures below are from
const ON_MACOS = process.platform === 'darwin';

/** Where the library is: PTC_LIBRARY, else what cargo has built here, else where the system looks. */
function libraryPath() {
  const file = ON_MACOS ? 'libptc.dylib' : 'libptc.so';
  const built = fileURLToPath(new URL(`../../target/release/${file}`, import.meta.url));
  return process.env.PTC_LIBRARY || (existsSync(built) ? built : file);
}

const library = koffi.load(libraryPath());
for (const name of ['ptc_error', 'ptc_engine', 'ptc_run', 'ptc_call', 'ptc_event', 'ptc_result']) koffi.opaque(name);

// Text is `void *` on both ways: it goes in as a Buffer and comes out by its length, since it may hold NULs.
const c = Object.fromEntries([
  'uint32_t ptc_abi_version()',
  'int32_t ptc_error_code(const ptc_error *error)',
  'const void *ptc_error_message(const ptc_error *error, _Out_ size_t *len)',
  'void ptc_error_free(ptc_error *error)',
  'ptc_error *ptc_engine_new(const void *config, size_t len, const void *host, _Out_ ptc_engine **out)',
  'ptc_error *ptc_engine_definition(ptc_engine *engine, const char *format, _Out_ void **out, _Out_ size_t *len)',
  'void ptc_string_free(void *string)',
  'ptc_error *ptc_engine_close(ptc_engine *engine, int64_t timeout_ms)',
  'void ptc_engine_free(ptc_engine *engine)',
  'ptc_error *ptc_run_start(ptc_engine *engine, const void *code, size_t code_len, const void *options, size_t options_len, void *context, _Out_ ptc_run **out)',
  'void ptc_run_free(ptc_run *run)',
  'ptc_error *ptc_run_wait(ptc_run *run, int64_t timeout_ms, _Out_ ptc_result **out)',
  'ptc_error *ptc_run_next_event(ptc_run *run, int64_t timeout_ms, _Out_ ptc_event **out)',
  'int32_t ptc_run_fd(const ptc_run *run)',
  'void ptc_run_cancel(ptc_run *run, const void *reason, size_t len)',
  'uint64_t ptc_call_id(const ptc_call *call)',
  'const void *ptc_call_tool(const ptc_call *call, _Out_ size_t *len)',
  'const void *ptc_call_args(const ptc_call *call, _Out_ size_t *len)',
  'ptc_error *ptc_call_reply(uint64_t id, const void *json, size_t len)',
  'ptc_error *ptc_call_fail(uint64_t id, const void *message, size_t len)',
  'int32_t ptc_event_kind(const ptc_event *event)',
  'const void *ptc_event_data(const ptc_event *event, _Out_ size_t *len)',
  'const ptc_call *ptc_event_call(const ptc_event *event)',
  'void ptc_event_free(ptc_event *event)',
  'const void *ptc_result_json(const ptc_result *result, _Out_ size_t *len)',
  'void ptc_result_free(ptc_result *result)',
].map((signature) => [/(ptc_\w+)\(/.exec(signature)[1], library.func(signature)]));

if (c.ptc_abi_version() < ABI_VERSION) {
  throw new Error(`${libraryPath()} implements ABI ${c.ptc_abi_version()} of ptc; ptc.mjs needs ${ABI_VERSION}: update the library`);
}

const EVENT = { STDOUT: 2, STDERR: 3, CALL: 4, END: 6 };
const EVENTS_A_TURN = 64;
const LEFT = { SOME: 'some', NOTHING_NOW: 'nothing now', NOTHING_EVER: 'nothing ever' };

// The run closes its own descriptor and a net.Socket closes what it was given, so the socket gets a copy.
const fcntl = koffi.load(null).func('int fcntl(int fd, int command, ...)');
const F_DUPFD_CLOEXEC = ON_MACOS ? 67 : 1030;
const duplicate = (fd) => fcntl(fd, F_DUPFD_CLOEXEC, 'int', 0);

/** What the library reports: `code` is one of `enum ptc_code`. */
export class PtcError extends Error {
  constructor(message, code) {
    super(message);
    this.name = 'PtcError';
    this.code = code;
  }
}

function check(error) {
  if (!error) return;
  const failure = new PtcError(text(c.ptc_error_message, error), c.ptc_error_code(error));
  c.ptc_error_free(error);
  throw failure;
}

/** A copy of `length` bytes of the library's. */
function copy(pointer, length) {
  const { buffer, byteOffset } = koffi.decode(pointer, 'uint8_t', length);
  return Buffer.from(buffer, byteOffset, length);
}

/** A copy of the bytes that a function like ptc_event_data gives for a handle. */
function bytes(give, handle) {
  const length = [0];
  const pointer = give(handle, length);
  return copy(pointer, length[0]);
}

const text = (give, handle) => bytes(give, handle).toString();

const toJson = (value) => Buffer.from(JSON.stringify(value) ?? 'null');

/** The message of whatever was thrown: not everything that is thrown is an Error, and not every Error has one. */
const messageOf = (thrown) => util.format('%s', thrown instanceof Error ? thrown.message || thrown.name : thrown);

/**
 * Runs scripts, any number at once. The configuration is the library's, but for `tools`: an object of
 * `{description, inputSchema, outputSchema, parallel, call(args, {signal})}` by name. A tool without an `inputSchema` has the
 * standard signature of its name (web_search, ...). `call` may be async; `signal` is aborted when the run has ended, and
 * what is thrown reaches the script as a failed call.
 */
export class Engine {
  #handle;
  #tools;
  #runs = new Set();
  #closing;

  constructor({ tools = {}, ...config } = {}) {
    this.#tools = tools;
    config.tools = Object.entries(tools).map(([name, { description, inputSchema, outputSchema, parallel }]) => (
      inputSchema ? { name, description, input_schema: inputSchema, output_schema: outputSchema, parallel } : name
    ));
    const source = toJson(config);
    const out = [null];
    check(c.ptc_engine_new(source, source.length, null, out));
    this.#handle = out[0];
  }

  /** The execute_code tool to show the model: 'anthropic', 'openai', 'mcp' or 'text'. */
  definition(format) {
    const out = [null];
    const length = [0];
    check(c.ptc_engine_definition(this.#open(), format, out, length));
    const definition = copy(out[0], length[0]).toString();
    c.ptc_string_free(out[0]);
    return format === 'text' ? definition : JSON.parse(definition);
  }

  /**
   * Runs `code` to its end and gives its result. `signal` cancels it; a string as the signal's reason goes into the output.
   * `onStdout` and `onStderr` get Buffers as they come, cut anywhere; when one throws the run is cancelled, and `execute`
   * rejects with what was thrown. The other options are those of a run (timeout, mode, cwd, ...).
   */
  async execute(code, { signal, onStdout, onStderr, ...options } = {}) {
    const source = Buffer.from(code);
    const optionsJson = toJson(options);
    const out = [null];
    check(c.ptc_run_start(this.#open(), source, source.length, optionsJson, optionsJson.length, null, out));
    const run = new Run(out[0], this.#tools, { [EVENT.STDOUT]: onStdout, [EVENT.STDERR]: onStderr });
    const cancel = () => run.cancel(signal.reason);
    signal?.addEventListener('abort', cancel, { once: true });
    if (signal?.aborted) cancel();
    this.#runs.add(run);
    try {
      return await run.result();
    } finally {
      signal?.removeEventListener('abort', cancel);
      this.#runs.delete(run);
      run.free();
    }
  }

  /** Cancels what runs, waits for its end and releases the engine. Closing again waits for the same. */
  close() {
    this.#closing ??= this.#release(this.#handle);
    return this.#closing;
  }

  async #release(handle) {
    this.#handle = null;
    // Without time to wait this only cancels, and its error says no more than that runs are still ending.
    c.ptc_error_free(c.ptc_engine_close(handle, 0));
    await Promise.allSettled(Array.from(this.#runs, (run) => run.ended));
    await util.promisify(c.ptc_engine_free.async)(handle);
  }

  #open() {
    if (!this.#handle) throw new Error('the engine is closed');
    return this.#handle;
  }
}

/** One script under way: takes its events, serves its calls. */
class Run {
  /** Settles when the last event was taken; rejects with what a listener threw. */
  ended;
  #handle;
  #tools;
  #listeners;
  #toolsEnd = new AbortController();
  #failure;

  constructor(handle, tools, listeners) {
    this.#handle = handle;
    this.#tools = tools;
    this.#listeners = listeners;
    setMaxListeners(0, this.#toolsEnd.signal); // one for each call at once is no leak
    this.ended = this.#follow();
  }

  async result() {
    await this.ended;
    const out = [null];
    check(c.ptc_run_wait(this.#handle, 0, out));
    const json = text(c.ptc_result_json, out[0]);
    c.ptc_result_free(out[0]);
    return JSON.parse(json);
  }

  cancel(reason) {
    const words = Buffer.from(typeof reason === 'string' ? reason : '');
    c.ptc_run_cancel(this.#handle, words, words.length);
  }

  free() {
    this.#toolsEnd.abort();
    c.ptc_run_free(this.#handle);
    this.#handle = null;
  }

  /** Takes events until the last one. The socket keeps the event loop alive until then. */
  async #follow() {
    const fd = duplicate(c.ptc_run_fd(this.#handle));
    if (fd < 0) throw new Error('no descriptor is left to follow the run with: close some, or raise the limit');
    const socket = new net.Socket({ fd, readable: true, writable: false });
    let next;
    try {
      await new Promise((resolve, reject) => {
        const turn = () => {
          clearImmediate(next);
          try {
            const left = this.#takeEvents();
            if (left === LEFT.SOME) next = setImmediate(turn);
            else if (left === LEFT.NOTHING_EVER) resolve();
          } catch (error) {
            reject(error);
          }
        };
        // The bytes mean nothing: they say that events wait.
        socket.on('data', turn).on('end', turn).on('error', turn);
        turn();
      });
    } finally {
      clearImmediate(next);
      socket.destroy();
    }
    if (this.#failure) throw this.#failure.thrown;
  }

  /** Takes events, but not for so long that others starve. Tells what is left. */
  #takeEvents() {
    for (let taken = 0; taken < EVENTS_A_TURN; taken++) {
      const out = [null];
      check(c.ptc_run_next_event(this.#handle, 0, out));
      const event = out[0];
      if (!event) return LEFT.NOTHING_NOW;
      const kind = c.ptc_event_kind(event);
      // A call of a built-in tool has nobody to be served by here.
      const call = kind === EVENT.CALL ? c.ptc_event_call(event) : null;
      if (call) this.#serve(call);
      else if (this.#listeners[kind]) this.#tell(this.#listeners[kind], bytes(c.ptc_event_data, event));
      c.ptc_event_free(event);
      if (kind === EVENT.END) return LEFT.NOTHING_EVER;
    }
    return LEFT.SOME;
  }

  #tell(listener, chunk) {
    if (this.#failure) return;
    try {
      listener(chunk);
    } catch (thrown) {
      this.#failure = { thrown };
      this.cancel();
    }
  }

  /** Answers one call, now or later. That its run has ended meanwhile is no error. */
  async #serve(call) {
    const id = c.ptc_call_id(call);
    const name = text(c.ptc_call_tool, call);
    const args = text(c.ptc_call_args, call);
    let answer = c.ptc_call_reply;
    let data;
    try {
      data = toJson(await this.#tools[name].call(JSON.parse(args), { signal: this.#toolsEnd.signal }));
    } catch (thrown) {
      answer = c.ptc_call_fail;
      data = Buffer.from(messageOf(thrown));
    }
    c.ptc_error_free(answer(id, data, data.length));
  }
}
