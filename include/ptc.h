/*
 * ptc: a model's Python script runs in a supervised child process, calls the host's tools as functions, and only what it
 * printed comes back.
 *
 * Generated from the doc comments in src/ffi/ (cargo build --features header); a test fails when the two differ.
 *
 * The rules in short:
 *
 * - Every function that can fail returns a ptc_error, NULL for success. The caller frees it with ptc_error_free. There is no
 *   "last error" and nothing else in thread-local storage.
 * - Text and JSON go in as (pointer, length), need no NUL and are copied. Text comes out with a NUL behind it and belongs to
 *   the handle that it came from.
 * - Every handle may be used from any thread, by several at once, and inside callbacks: that is what "Threads: any" says.
 *   Only, nobody may use one while or after it is freed. Freeing NULL is fine. In a child that the host forked, calls on
 *   inherited handles return PTC_CODE_STATE, and freeing them only forgets them; make a new engine there.
 * - "Requires" is what the library cannot check: breaking it is undefined behaviour.
 * - A call is answered by its id, once, now or later, from any thread.
 * - No lock is held while a callback runs: inside one everything is allowed but waiting for the same run and closing the
 *   engine, which return PTC_CODE_STATE. Freeing the engine is allowed.
 * - No function panics, aborts or prints. The library installs no signal handler, waits for no process but its own, changes
 *   no process-wide state, and leaves no thread, descriptor, file or process after ptc_engine_free.
 */

#ifndef PTC_H
#define PTC_H

#include <stddef.h>
#include <stdint.h>

typedef struct ptc_error ptc_error;
/** Configuration, tools and host; shared by many runs. */
typedef struct ptc_engine ptc_engine;
/** One execution of one script; reference-counted. */
typedef struct ptc_run ptc_run;
/** One tool call, borrowed: what was asked. It is answered by its id. */
typedef struct ptc_call ptc_call;
typedef struct ptc_event ptc_event;
typedef struct ptc_result ptc_result;
typedef struct ptc_host ptc_host;


/**
 * The version of this interface: it grows when something is added, and nothing is ever taken away or changed under the
 * same number of the library's name.
 */
#define PTC_ABI_VERSION 1

/**
 * What kind of error a `ptc_error` is.
 */
enum ptc_code {
  /**
   * An argument of the call itself: a NULL pointer, bad UTF-8, invalid JSON, an unknown name.
   */
  PTC_CODE_INVALID_ARGUMENT = 1,
  /**
   * The configuration or a run's options; the message names the JSON path.
   */
  PTC_CODE_CONFIG = 2,
  /**
   * This platform cannot run scripts, or lacks something that was required.
   */
  PTC_CODE_UNSUPPORTED = 3,
  /**
   * No usable Python interpreter.
   */
  PTC_CODE_INTERPRETER = 4,
  /**
   * The child process could not be started.
   */
  PTC_CODE_SPAWN = 5,
  /**
   * The operating system refused a file, socket or thread.
   */
  PTC_CODE_IO = 6,
  /**
   * The call came at the wrong time: an answered call, a closed engine, a wait inside a callback.
   */
  PTC_CODE_STATE = 7,
  /**
   * A bug in ptc: a panic that was caught at its border.
   */
  PTC_CODE_PANIC = 8,
};

/**
 * What an event is about, and what `ptc_event_data` gives for it.
 */
enum ptc_event_kind {
  /**
   * The script runs. Data: a JSON object with `pid`, `python`, `mode`, `cwd`.
   */
  PTC_EVENT_STARTED = 1,
  /**
   * Bytes that the script wrote to stdout, cut anywhere. Where more than 1 MiB waits to be taken, some are left out and a
   * line says so; the result is complete all the same.
   */
  PTC_EVENT_STDOUT = 2,
  /**
   * Bytes that the script wrote to stderr, cut anywhere.
   */
  PTC_EVENT_STDERR = 3,
  /**
   * A tool call has begun (`ptc_event_call`). Data: a JSON object with `id`, `tool`, `args_preview`, and `"built_in": true`
   * where the engine answers it itself. What the script wrote before it called has been told before.
   */
  PTC_EVENT_CALL = 4,
  /**
   * A call has ended; told once for each, before the answer leaves. A call whose turn had not come when the run ended has
   * no `PTC_EVENT_CALL`. Data: its entry in the result's `tool_calls`.
   */
  PTC_EVENT_CALL_END = 5,
  /**
   * The run has ended; no event follows. Data: a JSON object with `status` and `duration_seconds`.
   */
  PTC_EVENT_END = 6,
};

/**
 * How a run ended.
 */
enum ptc_status {
  /**
   * The script ended with exit code 0.
   */
  PTC_STATUS_SUCCESS = 0,
  /**
   * Another exit code, a signal, or a script that could not be started.
   */
  PTC_STATUS_ERROR = 1,
  /**
   * The script ran longer than it may and was killed.
   */
  PTC_STATUS_TIMEOUT = 2,
  /**
   * The run was cancelled.
   */
  PTC_STATUS_INTERRUPTED = 3,
};

/**
 * One tool call: what was asked. It lives as long as the callback or the event that brought it; the answer goes by its id, at
 * any time and from any thread.
 */
struct ptc_call;

/**
 * An engine: configuration, tools and host, shared by any number of runs at once. May be used from any thread.
 */
struct ptc_engine;

/**
 * What went wrong. Every function that can fail returns one, or NULL for success; the caller frees it with
 * `ptc_error_free`. Nothing is kept in thread-local storage, so it may be looked at on any thread.
 */
struct ptc_error;

/**
 * Something that happened in a run. Pushed events live as long as their callback; pulled ones belong to the caller.
 */
struct ptc_event;

/**
 * How a run ended. Belongs to the caller, independent of the run and the engine.
 */
struct ptc_result;

/**
 * One execution of one script. Reference-counted: `ptc_run_retain` and `ptc_run_free` in pairs, from any thread. Every handle
 * may be used from any thread, and by several at once.
 */
struct ptc_run;

/**
 * Serves a tool call. `call` is valid until the function returns; take its id with `ptc_call_id` to answer later. The
 * function answers (`ptc_call_reply`, `ptc_call_reply_text`, `ptc_call_fail`) or says that it will (`ptc_call_defer`);
 * returning without any of these fails the call at once. It must not leave by longjmp or by an exception.
 */
typedef void (*ptc_dispatch_fn)(void *user_data, const struct ptc_call *call);

/**
 * Is told of an event. `event` is valid until the function returns and must not be freed. The events of a run come in order
 * and one at a time.
 */
typedef void (*ptc_event_fn)(void *user_data, const struct ptc_event *event);

/**
 * Is told that `user_data` is not needed any more. It is called by the thread that closes the engine; for an engine that was
 * freed inside one of its callbacks, by a thread of its own.
 */
typedef void (*ptc_drop_fn)(void *user_data);

/**
 * The host of an engine. Zero it, set `struct_size = sizeof(ptc_host)`, fill in what you use. The struct is copied;
 * only `user_data` has to stay alive, until `drop` is called.
 */
struct ptc_host {
  /**
   * `sizeof(ptc_host)`: tells which members the caller knows.
   */
  size_t struct_size;
  /**
   * Given to each callback and never looked at. With `threads` > 0 it is used from several threads.
   */
  void *user_data;
  /**
   * NULL: calls are pulled with `ptc_run_next_event`.
   */
  ptc_dispatch_fn dispatch;
  /**
   * NULL: no events are pushed. A host that pulls its calls may be told of events all the same.
   */
  ptc_event_fn on_event;
  /**
   * Called exactly once with `user_data`, after the last callback; also when `ptc_engine_new` fails. NULL: nothing to do.
   */
  ptc_drop_fn drop;
  /**
   * 0: callbacks run only on a thread that is inside `ptc_execute` or `ptc_run_wait`. n, up to 1024: on at most n
   * long-lived engine threads, in parallel.
   */
  int32_t threads;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, such as "0.1.0". A static string; never NULL.
 *
 * Threads: any.
 */
const char *ptc_version(void);

/**
 * The ABI version that the library implements. It serves hosts that were compiled with a `PTC_ABI_VERSION` up to this.
 *
 * Threads: any.
 */
uint32_t ptc_abi_version(void);

/**
 * Whether scripts can be run on this platform at all: 1 or 0. Where it is 0 `ptc_engine_new` returns
 * `PTC_CODE_UNSUPPORTED`, and a host falls back to ordinary tool calls.
 *
 * Threads: any.
 */
int32_t ptc_is_supported(void);

/**
 * The error's `ptc_code`; 0 for NULL.
 *
 * Requires: `error` is NULL or was not freed.
 * Threads: any.
 */
int32_t ptc_error_code(const struct ptc_error *error);

/**
 * The error's message: what was wrong, where, and what to do. NUL-terminated UTF-8 that belongs to the error and lives as
 * long; `len` (may be NULL) receives its length in bytes, without the NUL. NULL, and length 0, for NULL.
 *
 * Requires: `error` is NULL or was not freed; `len` is NULL or writable.
 * Threads: any.
 */
const char *ptc_error_message(const struct ptc_error *error,
                              size_t *len);

/**
 * Frees an error. NULL is fine.
 *
 * Requires: `error` is NULL or was not freed.
 * Threads: any.
 */
void ptc_error_free(struct ptc_error *error);

/**
 * Makes an engine. `config` is a JSON object (`len` 0: all defaults), `host` the callbacks (NULL: none, calls are pulled);
 * both are copied. `*out` is the engine, to be freed with `ptc_engine_free`, or NULL after an error. The host's environment
 * is copied now, of which scripts get the harmless part; no interpreter is looked for before the first run.
 *
 * On failure too the host's `drop` is called, before this returns, unless `struct_size` cannot be that of a `ptc_host`.
 *
 * Errors: `PTC_CODE_CONFIG` names the JSON path of what is wrong; `PTC_CODE_INVALID_ARGUMENT` for NULL, bad UTF-8 or a host
 * struct that does not fit; `PTC_CODE_UNSUPPORTED` where scripts cannot run; `PTC_CODE_IO` when descriptors have run out.
 * Requires: `config` is readable for `len` bytes; `host` is NULL or readable for its `struct_size`; `out` is writable.
 * Threads: any; not while another thread changes the environment.
 */
struct ptc_error *ptc_engine_new(const char *config,
                                 size_t len,
                                 const struct ptc_host *host,
                                 struct ptc_engine **out);

/**
 * The definition of the `execute_code` tool for the model. `format` is "anthropic", "openai", "mcp" (all JSON) or "text".
 * `*out` is NUL-terminated UTF-8, to be freed with `ptc_string_free`, or NULL after an error; `len` (may be NULL) receives its
 * length in bytes, without the NUL.
 *
 * Errors: `PTC_CODE_INVALID_ARGUMENT` for NULL or an unknown format.
 * Requires: `engine` is NULL or was not freed; `format` is NULL or NUL-terminated; `out` is writable; `len` is NULL or writable.
 * Threads: any.
 */
struct ptc_error *ptc_engine_definition(struct ptc_engine *engine,
                                        const char *format,
                                        char **out,
                                        size_t *len);

/**
 * Frees a string that ptc gave to its caller for keeps. NULL is fine.
 *
 * Requires: `string` is NULL, or came from `ptc_engine_definition` and was not freed.
 * Threads: any.
 */
void ptc_string_free(char *string);

/**
 * Cancels the runs and waits at most `timeout_ms` milliseconds (-1: without limit) until they have ended and no callback is
 * under way. After NULL no callback comes any more, the host's `drop` was called and the threads of the engine are gone.
 * Closing again is fine.
 *
 * Errors: `PTC_CODE_STATE` inside a callback of this engine (nothing was done), or when the time was not enough: the engine
 * then takes no new runs, and closing may be tried again. `PTC_CODE_INVALID_ARGUMENT` for NULL or a time below -1.
 * Requires: `engine` is NULL or was not freed.
 * Threads: any.
 */
struct ptc_error *ptc_engine_close(struct ptc_engine *engine,
                                   int64_t timeout_ms);

/**
 * Closes the engine without a time limit and releases it. Inside one of its callbacks the closing is left to a thread of its
 * own, which waits for the callback to return. Runs outlive their engine: handles stay valid, for the results. NULL is fine.
 *
 * Requires: `engine` is NULL or was not freed; no other thread uses it any more.
 * Threads: any.
 */
void ptc_engine_free(struct ptc_engine *engine);

/**
 * Starts a script and returns at once. `code` is UTF-8 Python; `options` is a JSON object (`options_len` 0: none); both are
 * copied. `context` is handed back with each of the run's calls and never looked at. `*out` is the run, to be freed with
 * `ptc_run_free`, or NULL after an error.
 *
 * Errors: `PTC_CODE_INVALID_ARGUMENT` for NULL and for code that cannot be a script, `PTC_CODE_CONFIG` for bad options,
 * `PTC_CODE_STATE` for a closed engine, `PTC_CODE_IO` when threads or descriptors have run out. What goes wrong later is in
 * the run's result.
 * Requires: `engine` is NULL or was not freed; `code` and `options` are readable for their lengths; `out` is writable.
 * Threads: any.
 */
struct ptc_error *ptc_run_start(struct ptc_engine *engine,
                                const char *code,
                                size_t code_len,
                                const char *options,
                                size_t options_len,
                                void *context,
                                struct ptc_run **out);

/**
 * Runs a script to its end: `ptc_run_start` and `ptc_run_wait` in one. With `threads` = 0 callbacks run on this thread. Without a
 * dispatch callback there is nobody to pull the script's calls, so they fail. `*out` is the result, to be freed with
 * `ptc_result_free`, or NULL after an error. Nothing but the script's own end, its timeout or `ptc_engine_close` stops it.
 *
 * Errors: as `ptc_run_start`.
 * Requires: as `ptc_run_start`. A callback may free the engine; the run is then cancelled and its result comes as ever.
 * Threads: any, also inside a callback.
 */
struct ptc_error *ptc_execute(struct ptc_engine *engine,
                              const char *code,
                              size_t code_len,
                              const char *options,
                              size_t options_len,
                              void *context,
                              struct ptc_result **out);

/**
 * One more handle to the run, to be freed like the first and as good as it. NULL for NULL.
 *
 * Requires: `run` is NULL or was not freed.
 * Threads: any.
 */
struct ptc_run *ptc_run_retain(struct ptc_run *run);

/**
 * Gives a handle back. The last one closes the run's descriptor and cancels the run if it is still going, without waiting for
 * it. NULL is fine. A callback may free the handle that is being waited for: that wait holds the run until its end.
 *
 * Requires: `run` is NULL or was not freed; no other thread uses this handle any more.
 * Threads: any.
 */
void ptc_run_free(struct ptc_run *run);

/**
 * Waits at most `timeout_ms` milliseconds (-1: without limit) for the end. `*out` is the result, to be freed with
 * `ptc_result_free`, or NULL when the run is still going or after an error. May be called again, each time with a result of
 * its own. With `threads` = 0 this is where callbacks run; the time limit interrupts none of them, but the script's end,
 * timeout and cancellation wait for none either.
 *
 * Errors: `PTC_CODE_STATE` inside a callback of this run; `PTC_CODE_INVALID_ARGUMENT` for NULL or a time below -1.
 * Requires: `run` is NULL or was not freed; `out` is writable.
 * Threads: any; several may wait for one run, and share its callbacks with `threads` = 0.
 */
struct ptc_error *ptc_run_wait(struct ptc_run *run,
                               int64_t timeout_ms,
                               struct ptc_result **out);

/**
 * Takes the next event of a run whose host has no dispatch callback, waiting for it at most `timeout_ms` milliseconds (-1:
 * without limit, 0: not at all). `*out` is the event, to be freed with `ptc_event_free`, or NULL: none came in that time, the
 * last one (`PTC_EVENT_END`) was taken before, or there was an error. A call that is taken is deferred: answer it by its id.
 *
 * Errors: `PTC_CODE_STATE` for an engine whose host has a dispatch callback; `PTC_CODE_INVALID_ARGUMENT` for NULL or a time
 * below -1.
 * Requires: `run` is NULL or was not freed; `out` is writable.
 * Threads: any; of several that pull, each event goes to one.
 */
struct ptc_error *ptc_run_next_event(struct ptc_run *run,
                                     int64_t timeout_ms,
                                     struct ptc_event **out);

/**
 * A descriptor that is readable while an event waits or the run has ended: one end of a non-blocking socket pair, fit for
 * poll, epoll, libuv, asyncio and Go's netpoller. Its bytes mean nothing and may be read; take events with
 * `ptc_run_next_event(run, 0, …)` until there is none. It belongs to the run and is closed with the last handle: dup it for
 * an owner that closes. -1 for NULL, when descriptors have run out, and in a forked child.
 *
 * Requires: `run` is NULL or was not freed.
 * Threads: any.
 */
int32_t ptc_run_fd(const struct ptc_run *run);

/**
 * Stops the run: SIGTERM, and SIGKILL after the grace period. Returns at once; does nothing when the run has ended or is being
 * stopped. `reason` (UTF-8, copied; `len` 0: none) replaces the words after the dash in the closing line of the output. NULL
 * is ignored, and a reason that is not UTF-8 is left out.
 *
 * Requires: `run` is NULL or was not freed; `reason` is NULL or readable for `len` bytes.
 * Threads: any.
 */
void ptc_run_cancel(struct ptc_run *run,
                    const char *reason,
                    size_t len);

/**
 * The call's id: unique in this process, never reused, never 0. 0 for NULL.
 *
 * Requires: `call` is NULL, or its callback has not returned, or its event was not freed.
 * Threads: any.
 */
uint64_t ptc_call_id(const struct ptc_call *call);

/**
 * The name of the tool, UTF-8 with a NUL behind it. `len` (may be NULL) receives its length in bytes, without the NUL. It
 * belongs to the call and lives as long. NULL, and length 0, for NULL.
 *
 * Requires: `call` is NULL, or its callback has not returned, or its event was not freed; `len` is NULL or writable.
 * Threads: any.
 */
const char *ptc_call_tool(const struct ptc_call *call,
                          size_t *len);

/**
 * The arguments: a JSON object as the script sent it, UTF-8 with a NUL behind it. `len` (may be NULL) receives its length in
 * bytes, without the NUL. It belongs to the call and lives as long. NULL, and length 0, for NULL.
 *
 * Requires: as `ptc_call_tool`.
 * Threads: any.
 */
const char *ptc_call_args(const struct ptc_call *call,
                          size_t *len);

/**
 * The context that was given to `ptc_run_start` or `ptc_execute`, which ptc never looks at. NULL for NULL.
 *
 * Requires: `call` is NULL, or its callback has not returned, or its event was not freed.
 * Threads: any.
 */
void *ptc_call_context(const struct ptc_call *call);

/**
 * Says, inside dispatch, that the answer comes later. Then any thread may answer, also before dispatch has returned. A call
 * that was pulled needs no such word.
 *
 * Errors: `PTC_CODE_STATE` when the call is not open or is deferred already.
 * Threads: any.
 */
struct ptc_error *ptc_call_defer(uint64_t id);

/**
 * Answers a call with a JSON value of any kind, at any time and from any thread. The text is copied; it needs no NUL.
 *
 * Errors: `PTC_CODE_STATE` when the call was answered before, its run has ended, or there never was one; nothing else happens
 * then. `PTC_CODE_INVALID_ARGUMENT` when `json` is not valid JSON, is NULL, or larger than `max_message_bytes`: the call has
 * failed then, and the script is told why.
 * Requires: `json` is readable for `len` bytes.
 * Threads: any.
 */
struct ptc_error *ptc_call_reply(uint64_t id,
                                 const char *json,
                                 size_t len);

/**
 * Answers a call with a string, which is never parsed: the script gets a `str`. The text (UTF-8, NULs allowed) is copied.
 *
 * Errors: as `ptc_call_reply`; `PTC_CODE_INVALID_ARGUMENT` is for text that is not UTF-8.
 * Requires: `text` is readable for `len` bytes.
 * Threads: any.
 */
struct ptc_error *ptc_call_reply_text(uint64_t id,
                                      const char *text,
                                      size_t len);

/**
 * Answers a call with an error: the script gets `{"error": message}`, or a `ToolError` where the configuration says so. The
 * message is copied; one that is not UTF-8 is repaired.
 *
 * Errors: as `ptc_call_reply`; `PTC_CODE_INVALID_ARGUMENT` is for NULL with a length.
 * Requires: `message` is readable for `len` bytes.
 * Threads: any.
 */
struct ptc_error *ptc_call_fail(uint64_t id,
                                const char *message,
                                size_t len);

/**
 * Whether an answer to the call would still reach its script: 1, or 0 once it was answered, its run has ended or its caller is
 * gone. A tool that takes long asks now and then. 0 for an id that never was.
 *
 * Threads: any.
 */
int32_t ptc_call_is_wanted(uint64_t id);

/**
 * The event's kind, one of `enum ptc_event_kind`; 0 for NULL.
 *
 * Requires: `event` is NULL, or a pulled event that was not freed, or its callback has not returned.
 * Threads: any.
 */
int32_t ptc_event_kind(const struct ptc_event *event);

/**
 * The event's data: the bytes of a chunk of output, cut anywhere, or a JSON object (see `enum ptc_event_kind`). There is a NUL
 * behind it; `len` (may be NULL) receives its length in bytes, without that NUL. It belongs to the event and lives as long.
 * NULL, and length 0, for NULL.
 *
 * Requires: as `ptc_event_kind`; `len` is NULL or writable.
 * Threads: any.
 */
const char *ptc_event_data(const struct ptc_event *event,
                           size_t *len);

/**
 * The call of a `PTC_EVENT_CALL`, to be answered. NULL for any other event, and for a call of one of the `builtin_tools`
 * (`"built_in": true` in its data), which the engine answers: such an event only tells of it. It belongs to the event and lives as long; its id may be answered
 * for longer.
 *
 * Requires: as `ptc_event_kind`.
 * Threads: any.
 */
const struct ptc_call *ptc_event_call(const struct ptc_event *event);

/**
 * Frees a pulled event. NULL is fine; a pushed event must not be freed. A call that came with it stays open.
 *
 * Requires: `event` is NULL, or came from `ptc_run_next_event` and was not freed.
 * Threads: any.
 */
void ptc_event_free(struct ptc_event *event);

/**
 * The run's `ptc_status`; -1 for NULL.
 *
 * Requires: `result` is NULL or was not freed.
 * Threads: any.
 */
int32_t ptc_result_status(const struct ptc_result *result);

/**
 * The whole result as a JSON object: `status`, `output`, `tool_calls_made`, `duration_seconds`, and what else applies.
 * NUL-terminated UTF-8 that belongs to the result and lives as long; `len` (may be NULL) receives its length in bytes, without
 * the NUL. NULL, and length 0, for NULL.
 *
 * Requires: `result` is NULL or was not freed; `len` is NULL or writable.
 * Threads: any.
 */
const char *ptc_result_json(const struct ptc_result *result,
                            size_t *len);

/**
 * What the model should see: the script's output and, where it did not succeed, why. UTF-8 with a NUL behind it, which may
 * hold NULs of the script's own; `len` (may be NULL) receives its length in bytes, without the last NUL. It belongs to the
 * result and lives as long. NULL, and length 0, for NULL.
 *
 * Requires: as `ptc_result_json`.
 * Threads: any.
 */
const char *ptc_result_output(const struct ptc_result *result,
                              size_t *len);

/**
 * Frees a result. NULL is fine.
 *
 * Requires: `result` is NULL or was not freed.
 * Threads: any.
 */
void ptc_result_free(struct ptc_result *result);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PTC_H */
