// ptc for Node: a model's Python script calls functions of this process.
//
// Events are pulled when the run's descriptor says so, so that no callback enters JavaScript from a foreign thread and no
// call into the library ever blocks the event loop.
import koffi from 'koffi';
import net from 'node:net';
import { fileURLToPath } from 'node:url';

const library = koffi.load(
  process.env.PTC_LIBRARY ?? fileURLToPath(new URL('../../target/release/libptc.so', import.meta.url)),
);
for (const name of ['ptc_error', 'ptc_engine', 'ptc_run', 'ptc_call', 'ptc_event', 'ptc_result']) koffi.opaque(name);
koffi.struct('ptc_host', {
  struct_size: 'size_t', user_data: 'void *', dispatch: 'void *', on_event: 'void *', drop: 'void *', threads: 'int32_t',
});

const c = Object.fromEntries([
  'int32_t ptc_error_code(const ptc_error *error)',
  'const char *ptc_error_message(const ptc_error *error, size_t *len)',
  'void ptc_error_free(ptc_error *error)',
  'ptc_error *ptc_engine_new(const void *config, size_t len, const ptc_host *host, _Out_ ptc_engine **out)',
  'ptc_error *ptc_engine_definition(ptc_engine *engine, const char *format, _Out_ void **out, _Out_ size_t *len)',
  'void ptc_string_free(void *string)',
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

const EVENT = { STDOUT: 2, STDERR: 3, CALL: 4, END: 6 };

// A copy of the run's descriptor, for a net.Socket to own: the run closes its own.
const libc = koffi.load(process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6');
const fcntl = libc.func('int fcntl(int fd, int command, ...)');
const F_DUPFD_CLOEXEC = process.platform === 'darwin' ? 67 : 1030;

/** What the library reports: `code` is one of `enum ptc_code`. */
export class PtcError extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

function check(error) {
  if (!error) return;
  const failure = new PtcError(c.ptc_error_message(error, null), c.ptc_error_code(error));
  c.ptc_error_free(error);
  throw failure;
}

/** The bytes that a function like ptc_event_data gives, copied. */
function bytes(give, handle) {
  const length = [0];
  const pointer = give(handle, length);
  return Buffer.from(koffi.decode(pointer, 'uint8_t', Number(length[0])));
}

const text = (give, handle) => bytes(give, handle).toString('utf8');

/**
 * Runs scripts. `tools` is an object of `{description, inputSchema, outputSchema, call(args, {signal})}` by name; `call` may
 * be async, and what it throws reaches the script as a failed call.
 */
export class Engine {
  #handle;
  #tools;
  #running = new Set();

  constructor({ tools = {}, ...config } = {}) {
    this.#tools = tools;
    config.tools = Object.entries(tools).map(([name, tool]) => ({
      name,
      description: tool.description,
      input_schema: tool.inputSchema,
      ...(tool.outputSchema && { output_schema: tool.outputSchema }),
    }));
    const source = Buffer.from(JSON.stringify(config));
    const host = { struct_size: koffi.sizeof('ptc_host'), user_data: null, dispatch: null, on_event: null, drop: null, threads: 0 };
    const out = [null];
    check(c.ptc_engine_new(source, source.length, host, out));
    this.#handle = out[0];
  }

  /** The execute_code tool to show the model: 'anthropic', 'openai', 'mcp' or 'text'. */
  definition(format) {
    const out = [null];
    const length = [0];
    check(c.ptc_engine_definition(this.#handle, format, out, length));
    const definition = Buffer.from(koffi.decode(out[0], 'uint8_t', Number(length[0]))).toString('utf8');
    c.ptc_string_free(out[0]);
    return format === 'text' ? definition : JSON.parse(definition);
  }

  /**
   * Runs `code` to its end and gives its result. `signal` cancels it; `onStdout` gets Buffers as they come; the other
   * options are those of a run (timeout, mode, cwd, ...).
   */
  async execute(code, { signal, onStdout, onStderr, ...options } = {}) {
    const source = Buffer.from(code);
    const optionsText = Buffer.from(JSON.stringify(options));
    const out = [null];
    check(c.ptc_run_start(this.#handle, source, source.length, optionsText, optionsText.length, null, out));
    const run = out[0];
    const tools = new AbortController();
    const cancel = () => c.ptc_run_cancel(run, null, 0);
    const ended = this.#follow(run, { onStdout, onStderr, signal: tools.signal });
    this.#running.add(ended);
    signal?.addEventListener('abort', cancel);
    if (signal?.aborted) cancel();
    try {
      await ended;
      return takeResult(run);
    } finally {
      signal?.removeEventListener('abort', cancel);
      tools.abort();
      c.ptc_run_free(run);
      this.#running.delete(ended);
    }
  }

  /** Waits for what runs and releases the engine, which must not be used any more. */
  async close() {
    await Promise.allSettled(this.#running);
    c.ptc_engine_free(this.#handle);
    this.#handle = null;
  }

  /** Resolves when the run's last event has been seen. The socket keeps the event loop alive until then. */
  #follow(run, listeners) {
    const socket = new net.Socket({ fd: fcntl(c.ptc_run_fd(run), F_DUPFD_CLOEXEC, 'int', 0), readable: true, writable: false });
    return new Promise((resolve, reject) => {
      const drain = () => {
        try {
          if (!this.#takeEvents(run, listeners)) return;
          resolve();
        } catch (error) {
          reject(error);
        }
        socket.destroy();
      };
      // The bytes mean nothing: they say that events wait.
      socket.on('data', drain).on('end', drain).on('error', drain);
      drain();
    });
  }

  /** Takes all events that wait; true when the last one was among them. */
  #takeEvents(run, { onStdout, onStderr, signal }) {
    for (;;) {
      const out = [null];
      check(c.ptc_run_next_event(run, 0, out));
      const event = out[0];
      if (!event) return false;
      const kind = c.ptc_event_kind(event);
      try {
        if (kind === EVENT.STDOUT) onStdout?.(bytes(c.ptc_event_data, event));
        else if (kind === EVENT.STDERR) onStderr?.(bytes(c.ptc_event_data, event));
        else if (kind === EVENT.CALL) this.#serve(c.ptc_event_call(event), signal);
        else if (kind === EVENT.END) return true;
      } finally {
        c.ptc_event_free(event);
      }
    }
  }

  /** Answers one call, now or later. That its run has ended meanwhile is no error. */
  async #serve(call, signal) {
    const id = c.ptc_call_id(call);
    const name = text(c.ptc_call_tool, call);
    const args = text(c.ptc_call_args, call);
    let answer, how;
    try {
      const result = await this.#tools[name].call(JSON.parse(args), { signal });
      [answer, how] = [JSON.stringify(result ?? null), c.ptc_call_reply];
    } catch (error) {
      [answer, how] = [String(error?.message ?? error), c.ptc_call_fail];
    }
    const data = Buffer.from(answer);
    const late = how(id, data, data.length);
    if (late) c.ptc_error_free(late);
  }
}

function takeResult(run) {
  const out = [null];
  check(c.ptc_run_wait(run, 0, out));
  const result = JSON.parse(text(c.ptc_result_json, out[0]));
  c.ptc_result_free(out[0]);
  return result;
}
