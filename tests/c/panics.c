/* A bug inside the library must not take the host along: a panic comes back as PTC_CODE_PANIC, or ends in the result of
 * the run, and nothing is printed. Debug builds of the library panic on purpose at the word of src/panic.rs. */
#include "check.h"

static void answer_null(void *user_data, const ptc_call *call)
{
    (void)user_data;
    reply(ptc_call_id(call), "null");
}

static void a_panic_becomes_an_error(void)
{
    ptc_engine *engine = pulling();
    char *text = GARBAGE;
    int i;
    for (i = 0; i < 3; i++) {
        FAILS(ptc_engine_definition(engine, "# ptc-panic: definition", &text, NULL), PTC_CODE_PANIC,
              "ptc panicked, which is a bug in it: on purpose: definition");
        CHECK(text == NULL);
    }
    check_prints(engine, "print('unharmed')", "unharmed\n");
    ptc_engine_free(engine);
}

/* On the thread that supervises the run, before and after the script was started. */
static void a_panic_in_a_run_ends_that_run(void)
{
    static const char *const codes[] = { "# ptc-panic: launch\nprint(1)", "# ptc-panic: supervise\nprint(1)" };
    const int descriptors = open_descriptors(), threads = threads_now();
    size_t i;
    int style;
    for (style = -1; style <= 2; style++) {
        ptc_engine *engine = style < 0 ? pulling() : dispatching(answer_null, NULL, style);
        for (i = 0; i < 2; i++) {
            ptc_run *run = start(engine, codes[i]);
            if (style < 0) ptc_event_free(skip_to(run, PTC_EVENT_END));
            check_end(run, PTC_STATUS_ERROR, "ptc panicked, which is a bug in it: on purpose");
            check_result(execute(engine, codes[i]), PTC_STATUS_ERROR, "on purpose");
        }
        check_prints(engine, "print('unharmed')", "unharmed\n");
        ptc_engine_free(engine);
    }
    CHECK_INT(open_descriptors(), descriptors);
    CHECK_INT(threads_now(), threads);
    CHECK_INT(entries_of(scratch()), 0);
}

/* On the thread that serves the calls: the call fails, later ones are served. */
static void a_panic_at_a_call_fails_that_call(void)
{
    const int threads = threads_now();
    int style;
    for (style = -1; style <= 2; style++) {
        ptc_engine *engine = style < 0 ? pulling() : dispatching(answer_null, NULL, style);
        int i;
        for (i = 0; i < 3; i++) {
            ptc_run *run = start(engine, "# ptc-panic: offer\n" IMPORT "print(a(), b())");
            if (style < 0) pump(run);
            check_end(run, PTC_STATUS_SUCCESS,
                      "{'error': 'ptc panicked, which is a bug in it: on purpose: offer'} "
                      "{'error': 'ptc panicked, which is a bug in it: on purpose: offer'}\n");
        }
        ptc_engine_free(engine);
    }
    CHECK_INT(threads_now(), threads);
}

/* On the thread that reads the requests: the connection is lost, the others are not. */
static void a_panic_at_a_request_ends_its_connection(void)
{
    const int descriptors = open_descriptors(), threads = threads_now();
    int style;
    for (style = -1; style <= 2; style++) {
        ptc_engine *engine = style < 0 ? pulling() : dispatching(answer_null, NULL, style);
        ptc_run *run = start(engine,
                             IMPORT "import json, os, socket\n"
                                    "wire = socket.socket(socket.AF_UNIX)\n"
                                    "wire.connect(os.environ['PTC_RPC_SOCKET'])\n"
                                    "for line in ({'token': os.environ['PTC_RPC_TOKEN']},\n"
                                    "             {'id': 1, 'tool': '# ptc-panic: request', 'args': {}}):\n"
                                    "    wire.sendall(json.dumps(line).encode() + b'\\n')\n"
                                    "print(wire.recv(1), a())");
        if (style < 0) pump(run);
        check_end(run, PTC_STATUS_SUCCESS, "b'' None\n");
        ptc_engine_free(engine);
    }
    CHECK_INT(open_descriptors(), descriptors);
    CHECK_INT(threads_now(), threads);
}

const struct test panic_tests[] = {
    TEST(a_panic_becomes_an_error),
    TEST(a_panic_in_a_run_ends_that_run),
    TEST(a_panic_at_a_call_fails_that_call),
    TEST(a_panic_at_a_request_ends_its_connection),
    END_OF_TESTS
};
