/* What the tests of the C ABI are written with: a few macros and the helpers of support.c, no framework.
 *
 * Each test is a function that runs in a process of its own, forked before any engine was made, so that it may count
 * threads and descriptors, fork and change signals. Whatever a test has to say goes to stdout: stderr must stay empty,
 * which is itself one of the things that are tested. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptc.h"

/* Whether the library does without what only Linux has. */
#ifdef PTC_PORTABLE
enum { PORTABLE = 1 };
#else
enum { PORTABLE = 0 };
#endif

struct test {
    const char *name;
    void (*run)(void);
};

#define TEST(function) { #function, function }
#define END_OF_TESTS { NULL, NULL }

/* The themes; each file has one. */
extern const struct test argument_tests[];
extern const struct test call_tests[];
extern const struct test event_tests[];
extern const struct test run_tests[];
extern const struct test engine_tests[];
extern const struct test manners_tests[];
extern const struct test fork_tests[];
extern const struct test panic_tests[];

/* A failed check ends the test's process at once: what follows would only confuse. */
#define CHECK(condition) \
    do { \
        if (!(condition)) check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* Both are shown when they differ. */
#define CHECK_INT(actual, expected) check_int(__FILE__, __LINE__, #actual, (long long)(actual), (long long)(expected))
#define CHECK_STR(actual, expected) check_str(__FILE__, __LINE__, #actual, (actual), (expected))
/* `part` is in `text`. */
#define CHECK_HAS(text, part) check_has(__FILE__, __LINE__, #text, (text), (part), 1)
#define CHECK_HAS_NOT(text, part) check_has(__FILE__, __LINE__, #text, (text), (part), 0)
/* The call succeeds; its message is shown where it does not. */
#define OK(call) check_ok(__FILE__, __LINE__, #call, (call))
/* The call fails with this code, and its message has `part` in it. */
#define FAILS(call, code, part) check_fails(__FILE__, __LINE__, #call, (call), (code), (part))

void check_failed(const char *file, int line, const char *what);
void check_int(const char *file, int line, const char *what, long long actual, long long expected);
void check_str(const char *file, int line, const char *what, const char *actual, const char *expected);
void check_has(const char *file, int line, const char *what, const char *text, const char *part, int wanted);
void check_ok(const char *file, int line, const char *what, ptc_error *error);
void check_fails(const char *file, int line, const char *what, ptc_error *error, int code, const char *part);

/* Somewhere for a result to point at, to see that it is cleared. */
extern char check_garbage;
#define GARBAGE ((void *)&check_garbage)

/* ---- engines and runs ---- */

/* Three tools without a schema: "a", "b" and "c". */
#define TOOLS \
    "\"tools\": [{\"name\": \"a\", \"parallel\": true}, {\"name\": \"b\", \"parallel\": true}," \
    " {\"name\": \"c\", \"parallel\": true}]"
#define CONFIG "{" TOOLS "}"
/* The line that a script needs to call them. */
#define IMPORT "from hermes_tools import a, b, c, parallel, ToolError\n"

/* A host on the stack: the members that the tests vary. */
ptc_host make_host(ptc_dispatch_fn dispatch, ptc_event_fn on_event, void *user_data, int threads);
ptc_engine *make_engine(const char *config, const ptc_host *host);
/* An engine with CONFIG and this dispatch. */
ptc_engine *dispatching(ptc_dispatch_fn dispatch, void *user_data, int threads);
/* An engine with CONFIG whose calls are pulled. */
ptc_engine *pulling(void);

ptc_run *start(ptc_engine *engine, const char *code);
ptc_run *start_with(ptc_engine *engine, const char *code, const char *options, void *context);
/* Waits without limit. */
ptc_result *end_of(ptc_run *run);
ptc_result *execute(ptc_engine *engine, const char *code);

/* Runs `code` to its end, expects success and this output. */
void check_prints(ptc_engine *engine, const char *code, const char *output);
/* Checks status and output of a result and frees it. `part` is in the output; NULL: whatever it says. */
void check_result(ptc_result *result, int status, const char *part);
/* As check_result, for a run, whose handle is freed as well. */
void check_end(ptc_run *run, int status, const char *part);

/* Answers that do not fail, with NUL-terminated text. */
void reply(uint64_t id, const char *json);
void reply_text(uint64_t id, const char *text);
void fail(uint64_t id, const char *message);

/* The next event, waiting for it without limit; it must be of this kind (0: any). */
ptc_event *next(ptc_run *run, int kind);
/* Takes events until one of this kind comes, and gives that one. */
ptc_event *skip_to(ptc_run *run, int kind);
/* Answers each call with null and takes all events to the end. */
void pump(ptc_run *run);

/* ---- waiting for things without sleeping ---- */

/* A number that threads wait for. */
struct counter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int value;
};
#define COUNTER { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }
int count(struct counter *counter);
int value_of(struct counter *counter);
void wait_for(struct counter *counter, int value);

/* A named pipe, by which a script tells the test that it has come somewhere, and by whose end of file its death. */
struct fifo {
    char path[256];
};
struct fifo make_fifo(const char *name);
/* Opens it for reading (waits for a writer) and waits for the first byte. */
int hear(const struct fifo *fifo);
/* Waits until every writer is gone. */
void wait_for_silence(int fd);
/* Python that opens the pipe and writes a byte; the file stays open as `tell`. Formats into `buffer`. */
const char *with_fifo(char *buffer, size_t size, const char *script, const struct fifo *fifo);

/* The directory of this test, made for it and removed after it; it is also TMPDIR. */
const char *scratch(void);
int entries_of(const char *directory);
/* Descriptors and threads of this process; -1 where the system does not tell. */
int open_descriptors(void);
int threads_now(void);

#endif
