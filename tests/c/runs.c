/* One run: how it ends, waiting for it, cancelling it, its handles. */
#include "check.h"

#include <sched.h>

#define MINUTES "import time\ntime.sleep(1000)\n"

/* ---- how it ends ---- */

static void success(void)
{
    ptc_engine *engine = pulling();
    ptc_result *result = execute(engine, "import sys\nprint('good', end='')\nprint('unseen', file=sys.stderr)");
    size_t len = 0;
    const char *text = ptc_result_output(result, &len);
    CHECK_STR(text, "good");
    CHECK_INT(len, 4);
    CHECK(ptc_result_output(result, NULL) == text);
    text = ptc_result_json(result, &len);
    CHECK_INT(len, strlen(text));
    CHECK(ptc_result_json(result, NULL) == text);
    CHECK_HAS(text, "{\"status\":\"success\",\"output\":\"good\",\"tool_calls_made\":0,\"duration_seconds\":");
    CHECK_HAS(text, "\"exit_code\":0");
    CHECK_HAS_NOT(text, "\"error\"");
    check_result(result, PTC_STATUS_SUCCESS, NULL);
    ptc_engine_free(engine);
}

static void output_may_have_nul_bytes(void)
{
    ptc_engine *engine = pulling();
    ptc_result *result = execute(engine, "print('a\\0b')");
    size_t len = 0;
    const char *text = ptc_result_output(result, &len);
    CHECK_INT(len, 4);
    CHECK_INT(memcmp(text, "a\0b\n", 5), 0);
    ptc_result_free(result);
    ptc_engine_free(engine);
}

static void error(void)
{
    static const struct {
        const char *code, *output, *json;
    } cases[] = {
        { "import sys\nprint('before')\nsys.exit(3)", "before\n", "\"exit_code\":3" },
        { "import sys\nsys.exit(3)", "exit code 3", "\"exit_code\":3" },
        { "print('before')\n1/0", "ZeroDivisionError: division by zero", "\"error\":\"ZeroDivisionError: division" },
        { "import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)", "before\n",
          "\"signal\":9" },
        { "def (", "SyntaxError", "\"started\":false" },
    };
    ptc_engine *engine = pulling();
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptc_result *result = execute(engine, cases[i].code);
        CHECK_HAS(ptc_result_json(result, NULL), cases[i].json);
        CHECK_HAS(ptc_result_json(result, NULL), "\"status\":\"error\"");
        CHECK_HAS(ptc_result_json(result, NULL), "\"error\":\"");
        check_result(result, PTC_STATUS_ERROR, cases[i].output);
    }
    ptc_engine_free(engine);
}

static void a_script_that_cannot_be_started(void)
{
    ptc_engine *engine = make_engine("{\"python\": \"/nonexistent/python\"}", NULL);
    ptc_result *result = NULL;
    OK(ptc_execute(engine, "print(1)", 8, "{\"mode\": \"strict\"}", 18, NULL, &result));
    CHECK_HAS(ptc_result_json(result, NULL), "\"started\":false");
    check_result(result, PTC_STATUS_ERROR, "/nonexistent/python");
    ptc_engine_free(engine);
}

static void timeout(void)
{
    /* Long enough for an interpreter to start in. */
    ptc_engine *engine = make_engine("{\"code_execution\": {\"timeout\": 6}}", NULL);
    ptc_result *result = execute(engine, "print('before')\n" MINUTES);
    CHECK_HAS(ptc_result_json(result, NULL), "\"error\":\"Script timed out after 6s and was killed.\"");
    /* Plain POSIX has no way to look for them. */
    CHECK_HAS(ptc_result_json(result, NULL), PORTABLE ? "\"survivors\":null" : "\"survivors\":0");
    check_result(result, PTC_STATUS_TIMEOUT, "before\nScript timed out after 6s and was killed.");
    OK(ptc_execute(engine, MINUTES, strlen(MINUTES), "{\"timeout\": 0.25}", 17, NULL, &result));
    check_result(result, PTC_STATUS_TIMEOUT, "Script timed out after 0.25s and was killed.");
    ptc_engine_free(engine);
}

static void interrupted(void)
{
    static const struct {
        const char *reason;
        size_t len;
        const char *line;
    } cases[] = {
        { NULL, 0, "before\n[execution interrupted - user sent a new message]" },
        { "unread", 0, "before\n[execution interrupted - user sent a new message]" },
        { "the lid was closed", 18, "before\n[execution interrupted - the lid was closed]" },
        { "short of", 5, "before\n[execution interrupted - short]" },
        { "bad \xff", 5, "before\n[execution interrupted - user sent a new message]" },
        { NULL, 5, "before\n[execution interrupted - user sent a new message]" },
    };
    ptc_engine *engine = pulling();
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptc_run *run = start(engine, "print('before', flush=True)\n" MINUTES);
        ptc_result *result;
        ptc_event_free(skip_to(run, PTC_EVENT_STDOUT));
        ptc_run_cancel(run, cases[i].reason, cases[i].len);
        result = end_of(run);
        CHECK_STR(ptc_result_output(result, NULL), cases[i].line);
        check_result(result, PTC_STATUS_INTERRUPTED, NULL);
        ptc_run_free(run);
    }
    ptc_engine_free(engine);
}

static void output_over_the_limit_is_cut_with_a_notice(void)
{
    ptc_engine *engine = make_engine("{\"code_execution\": {\"max_stdout_bytes\": 1000}}", NULL);
    ptc_result *result = execute(engine, "print('first')\nprint('x' * 100000)\nprint('last')");
    CHECK_HAS(ptc_result_json(result, NULL), "\"stdout_truncated\":true");
    CHECK_HAS(ptc_result_output(result, NULL), "[output truncated at 1KB");
    CHECK_HAS(ptc_result_output(result, NULL), "first\n");
    check_result(result, PTC_STATUS_SUCCESS, "last\n");
    ptc_engine_free(engine);
}

static void calls_over_the_limit_are_refused(void)
{
    ptc_engine *engine = make_engine("{\"code_execution\": {\"max_tool_calls\": 1}, " TOOLS "}", NULL);
    ptc_run *run = start(engine, IMPORT "print(a(), a())");
    pump(run);
    check_end(run, PTC_STATUS_SUCCESS, "None {'error': 'Tool call limit reached (1). No more tool calls allowed in "
                                       "this execution.'}\n");
    run = start_with(engine, IMPORT "b()", "{\"tools\": [\"a\"]}", NULL);
    pump(run);
    check_end(run, PTC_STATUS_ERROR, "cannot import name 'b'");
    ptc_engine_free(engine);
}

/* ---- waiting ---- */

static void answer_null(void *user_data, const ptc_call *call)
{
    (void)user_data;
    reply(ptc_call_id(call), "null");
}

static void waiting_ends_when_its_time_is_over(void)
{
    const int64_t times[] = { 0, 50 };
    int threads;
    for (threads = -1; threads <= 2; threads++) {
        /* -1: without callbacks. */
        ptc_engine *engine = threads < 0 ? pulling() : NULL;
        struct fifo fifo = make_fifo("started");
        char code[1000];
        ptc_run *run;
        int fd;
        size_t i;
        if (engine == NULL) engine = dispatching(answer_null, NULL, threads);
        run = start(engine, with_fifo(code, sizeof code, MINUTES, &fifo));
        fd = hear(&fifo);
        for (i = 0; i < 2; i++) {
            ptc_result *result = GARBAGE;
            OK(ptc_run_wait(run, times[i], &result));
            CHECK(result == NULL);
        }
        ptc_run_cancel(run, NULL, 0);
        check_result(end_of(run), PTC_STATUS_INTERRUPTED, NULL);
        wait_for_silence(fd);
        /* Again, now that there is a result: any wait gives it, each time a new one. */
        for (i = 0; i < 2; i++) {
            ptc_result *result = NULL;
            OK(ptc_run_wait(run, times[i], &result));
            check_result(result, PTC_STATUS_INTERRUPTED, NULL);
        }
        ptc_run_free(run);
        ptc_engine_free(engine);
    }
}

static void *wait_and_check(void *run)
{
    check_result(end_of(run), PTC_STATUS_SUCCESS, "None None None\n");
    return NULL;
}

/* They share the calls where threads are lent, and all of them come back. */
static void several_threads_may_wait(void)
{
    int threads;
    for (threads = 0; threads <= 2; threads += 2) {
        ptc_engine *engine = dispatching(answer_null, NULL, threads);
        ptc_run *run = start(engine, IMPORT "print(a(), b(), c())");
        pthread_t waiters[3];
        int i;
        for (i = 0; i < 3; i++) CHECK_INT(pthread_create(&waiters[i], NULL, wait_and_check, run), 0);
        for (i = 0; i < 3; i++) pthread_join(waiters[i], NULL);
        wait_and_check(run);
        ptc_run_free(run);
        ptc_engine_free(engine);
    }
}

struct inside {
    ptc_engine *engine;
    ptc_run *run;
    struct counter ready;
    int calls;
};

static void wait_inside(void *user_data, const ptc_call *call)
{
    struct inside *inside = user_data;
    ptc_result *result = GARBAGE;
    wait_for(&inside->ready, 1);
    FAILS(ptc_run_wait(inside->run, -1, &result), PTC_CODE_STATE, "cannot wait for its own run");
    CHECK(result == NULL);
    FAILS(ptc_run_wait(inside->run, 0, &result), PTC_CODE_STATE, "cannot wait for its own run");
    reply(ptc_call_id(call), "\"refused\"");
}

static void a_callback_cannot_wait_for_its_own_run(void)
{
    int threads;
    for (threads = 0; threads <= 1; threads++) {
        struct inside inside = { NULL, NULL, COUNTER, 0 };
        ptc_engine *engine = dispatching(wait_inside, &inside, threads);
        inside.run = start(engine, IMPORT "print(a())");
        count(&inside.ready);
        check_end(inside.run, PTC_STATUS_SUCCESS, "refused\n");
        ptc_engine_free(engine);
    }
}

static void execute_inside(void *user_data, const ptc_call *call)
{
    struct inside *inside = user_data;
    if (*ptc_call_tool(call, NULL) == 'a') {
        ptc_result *result = execute(inside->engine, IMPORT "print('inner', b(), end='')");
        size_t len = 0;
        const char *output = ptc_result_output(result, &len);
        OK(ptc_call_reply_text(ptc_call_id(call), output, len));
        ptc_result_free(result);
    } else {
        reply(ptc_call_id(call), "\"served\"");
    }
}

/* Any other run may be waited for: on the lent thread, one inside the other. */
static void a_callback_may_run_another_script(void)
{
    int threads;
    for (threads = 0; threads <= 2; threads += 2) {
        struct inside inside = { NULL, NULL, COUNTER, 0 };
        inside.engine = dispatching(execute_inside, &inside, threads);
        check_prints(inside.engine, IMPORT "print('outer', a())", "outer inner served\n");
        ptc_engine_free(inside.engine);
    }
}

/* ---- cancelling ---- */

static void the_first_reason_counts(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, "print('x', flush=True)\n" MINUTES);
    ptc_event_free(skip_to(run, PTC_EVENT_STDOUT));
    ptc_run_cancel(run, "first", 5);
    ptc_run_cancel(run, "second", 6);
    ptc_run_cancel(run, NULL, 0);
    check_result(end_of(run), PTC_STATUS_INTERRUPTED, "[execution interrupted - first]");
    ptc_run_cancel(run, "late", 4);
    check_end(run, PTC_STATUS_INTERRUPTED, "[execution interrupted - first]");
    ptc_engine_free(engine);
}

static void cancelling_an_ended_run_changes_nothing(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, "print('done')");
    ptc_result_free(end_of(run));
    ptc_run_cancel(run, "late", 4);
    check_end(run, PTC_STATUS_SUCCESS, "done\n");
    ptc_engine_free(engine);
}

/* At once, before the interpreter was even looked for: whatever has been reached by then, it ends interrupted. */
static void a_run_may_be_cancelled_before_it_has_begun(void)
{
    ptc_engine *engine = pulling();
    int i;
    for (i = 0; i < 10; i++) {
        ptc_run *run = start(engine, MINUTES);
        ptc_run_cancel(run, "at once", 7);
        check_end(run, PTC_STATUS_INTERRUPTED, "[execution interrupted - at once]");
    }
    ptc_engine_free(engine);
}

static void cancel_inside(void *user_data, const ptc_call *call)
{
    struct inside *inside = user_data;
    wait_for(&inside->ready, 1);
    ptc_run_cancel(inside->run, "from dispatch", 13);
    inside->calls++;
    /* Whether the answer comes before the end of the run is a matter of luck. */
    ptc_error_free(ptc_call_reply(ptc_call_id(call), "1", 1));
}

static void a_run_may_be_cancelled_by_its_own_dispatch(void)
{
    int threads;
    for (threads = 0; threads <= 1; threads++) {
        struct inside inside = { NULL, NULL, COUNTER, 0 };
        ptc_engine *engine = dispatching(cancel_inside, &inside, threads);
        inside.run = start(engine, IMPORT "a()\n" MINUTES);
        count(&inside.ready);
        check_end(inside.run, PTC_STATUS_INTERRUPTED, "[execution interrupted - from dispatch]");
        CHECK_INT(inside.calls, 1);
        ptc_engine_free(engine);
    }
}

static void *cancel_it(void *run)
{
    ptc_run_cancel(run, "from elsewhere", 14);
    return NULL;
}

/* The waiting thread is inside a callback that lasts: timeout and kill do not wait for it. */
static void wait_for_end_of_script(void *user_data, const ptc_call *call)
{
    struct inside *inside = user_data;
    pthread_t other;
    wait_for(&inside->ready, 1);
    CHECK_INT(pthread_create(&other, NULL, cancel_it, inside->run), 0);
    while (ptc_call_is_wanted(ptc_call_id(call))) sched_yield();
    pthread_join(other, NULL);
    FAILS(ptc_call_reply(ptc_call_id(call), "1", 1), PTC_CODE_STATE, "is not open");
}

static void a_callback_that_lasts_delays_no_cancel(void)
{
    struct inside inside = { NULL, NULL, COUNTER, 0 };
    ptc_engine *engine = dispatching(wait_for_end_of_script, &inside, 0);
    inside.run = start(engine, IMPORT "a()\n" MINUTES);
    count(&inside.ready);
    check_end(inside.run, PTC_STATUS_INTERRUPTED, "[execution interrupted - from elsewhere]");
    ptc_engine_free(engine);
}

/* ---- handles ---- */

static void the_last_handle_cancels_a_run_that_goes_on(void)
{
    ptc_engine *engine = pulling();
    struct fifo fifo = make_fifo("started");
    char code[1000];
    ptc_run *first = start(engine, with_fifo(code, sizeof code, MINUTES, &fifo));
    ptc_run *second = ptc_run_retain(first);
    ptc_result *result = GARBAGE;
    int fd = hear(&fifo);
    ptc_run_free(first);
    OK(ptc_run_wait(second, 0, &result));
    CHECK(result == NULL);
    ptc_run_free(second);
    /* Nobody waits for it any more, and it dies all the same. */
    wait_for_silence(fd);
    ptc_engine_free(engine);
}

static void a_retained_handle_is_as_good_as_the_first(void)
{
    ptc_engine *engine = pulling();
    ptc_run *first = start(engine, IMPORT "print(a())"), *second = ptc_run_retain(first);
    ptc_run *third = ptc_run_retain(second);
    CHECK_INT(ptc_run_fd(second), ptc_run_fd(first));
    ptc_run_free(first);
    ptc_run_free(third);
    pump(second);
    check_end(second, PTC_STATUS_SUCCESS, "None\n");
    ptc_engine_free(engine);
}

static void runs_and_results_outlive_the_engine(void)
{
    ptc_engine *engine = pulling();
    ptc_run *ended = start(engine, "print('kept')"), *running = start(engine, MINUTES);
    ptc_result *result = end_of(ended);
    ptc_engine_free(engine);
    check_end(ended, PTC_STATUS_SUCCESS, "kept\n");
    /* Closing has cancelled it, and the reason says who did. */
    check_end(running, PTC_STATUS_INTERRUPTED, "[execution interrupted - the engine was closed]");
    check_result(result, PTC_STATUS_SUCCESS, "kept\n");
}

static void free_inside(void *user_data, const ptc_call *call)
{
    struct inside *inside = user_data;
    ptc_run_free(inside->run);
    reply(ptc_call_id(call), "\"freed\"");
}

/* A wait that is under way holds the run: a callback may give the only handle back. */
static void a_handle_may_be_freed_by_a_callback_of_its_wait(void)
{
    struct inside inside = { NULL, NULL, COUNTER, 0 };
    ptc_engine *engine = dispatching(free_inside, &inside, 0);
    inside.run = start(engine, IMPORT "print(a())");
    check_result(end_of(inside.run), PTC_STATUS_SUCCESS, "freed\n");
    ptc_engine_free(engine);
}

const struct test run_tests[] = {
    TEST(success),
    TEST(output_may_have_nul_bytes),
    TEST(error),
    TEST(a_script_that_cannot_be_started),
    TEST(timeout),
    TEST(interrupted),
    TEST(output_over_the_limit_is_cut_with_a_notice),
    TEST(calls_over_the_limit_are_refused),
    TEST(waiting_ends_when_its_time_is_over),
    TEST(several_threads_may_wait),
    TEST(a_callback_cannot_wait_for_its_own_run),
    TEST(a_callback_may_run_another_script),
    TEST(the_first_reason_counts),
    TEST(cancelling_an_ended_run_changes_nothing),
    TEST(a_run_may_be_cancelled_before_it_has_begun),
    TEST(a_run_may_be_cancelled_by_its_own_dispatch),
    TEST(a_callback_that_lasts_delays_no_cancel),
    TEST(the_last_handle_cancels_a_run_that_goes_on),
    TEST(a_retained_handle_is_as_good_as_the_first),
    TEST(runs_and_results_outlive_the_engine),
    TEST(a_handle_may_be_freed_by_a_callback_of_its_wait),
    END_OF_TESTS
};
