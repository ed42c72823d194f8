/* Events: pulled, with the run's descriptor, and pushed. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static int is_readable(int fd)
{
    struct pollfd entry;
    entry.fd = fd;
    entry.events = POLLIN;
    entry.revents = 0;
    CHECK(poll(&entry, 1, 0) >= 0);
    return (entry.revents & POLLIN) != 0;
}

static void wait_readable(int fd)
{
    struct pollfd entry;
    entry.fd = fd;
    entry.events = POLLIN;
    entry.revents = 0;
    CHECK_INT(poll(&entry, 1, -1), 1);
    CHECK((entry.revents & POLLIN) != 0);
}

/* What a pulling host does: sleeps in poll, takes all that is there, answers. `log` receives a line for each event. */
static void serve(ptc_run *run, char *log, size_t size)
{
    int fd = ptc_run_fd(run), ended = 0;
    CHECK(fd >= 0);
    *log = '\0';
    while (!ended) {
        ptc_event *event = NULL;
        wait_readable(fd);
        while (OK(ptc_run_next_event(run, 0, &event)), event != NULL) {
            size_t len = 0, used = strlen(log);
            const char *data = ptc_event_data(event, &len);
            const ptc_call *call = ptc_event_call(event);
            int kind = ptc_event_kind(event);
            CHECK_INT(data[len], 0);
            CHECK((call != NULL) == (kind == PTC_EVENT_CALL));
            CHECK_INT(ended, 0);
            if (call != NULL) reply_text(ptc_call_id(call), ptc_call_tool(call, NULL));
            ended = kind == PTC_EVENT_END;
            snprintf(log + used, size - used, "%d %s\n", kind, data);
            ptc_event_free(event);
        }
    }
}

/* `parts` are in `log`, one after the other. */
static void check_order(const char *log, const char *const *parts)
{
    const char *at = log;
    for (; *parts != NULL; parts++) {
        at = strstr(at, *parts);
        if (at == NULL) printf("%s\nexpected: %s\n", log, *parts);
        CHECK(at != NULL);
        at += strlen(*parts);
    }
}

static void a_run_is_served_with_poll(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, IMPORT "import sys\n"
                                        "print('out', flush=True)\n"
                                        "print(a(x=1), flush=True)\n"
                                        "print('err', file=sys.stderr, flush=True)\n");
    char log[4000];
    static const char *const all[] = {
        "1 {\"pid\":", "\"python\":\"",
        "\n2 out\n",
        "\n4 {\"id\":", "\"tool\":\"a\",\"args_preview\":\"{",
        "\n5 {\"id\":", "\"state\":\"answered\"",
        "2 a\n",
        "\n6 {\"status\":\"success\"", "\"duration_seconds\":", NULL
    };
    /* The two streams come by ways of their own. */
    static const char *const errors[] = { "1 {\"pid\":", "\n3 err\n", "6 {", NULL };
    ptc_event *event = GARBAGE;
    serve(run, log, sizeof log);
    CHECK(strncmp(log, all[0], strlen(all[0])) == 0);
    check_order(log, all);
    check_order(log, errors);

    /* After the last event there is none, however long one waits. */
    OK(ptc_run_next_event(run, -1, &event));
    CHECK(event == NULL);
    OK(ptc_run_next_event(run, 0, &event));
    CHECK(event == NULL);
    check_end(run, PTC_STATUS_SUCCESS, "out\na\n");
    ptc_engine_free(engine);
}

static void the_descriptor_is_one_for_any_loop(void)
{
    ptc_engine *engine = pulling();
    struct fifo fifo = make_fifo("started");
    char code[1000], byte;
    ptc_run *run = start(engine, with_fifo(code, sizeof code, "print(a(), flush=True)\nb()", &fifo));
    int fd = ptc_run_fd(run), type = 0, silence;
    socklen_t size = sizeof type;
    ptc_event *event = NULL;

    CHECK(fd >= 0);
    CHECK_INT(ptc_run_fd(run), fd);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    CHECK_INT(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size), 0);
    CHECK_INT(type, SOCK_STREAM);

    silence = hear(&fifo);
    ptc_event_free(skip_to(run, PTC_EVENT_STARTED));
    event = skip_to(run, PTC_EVENT_CALL);
    /* Nothing waits, so it is not readable, and reading it does not block. */
    CHECK(!is_readable(fd));
    CHECK_INT(read(fd, &byte, 1), -1);
    CHECK(errno == EAGAIN || errno == EWOULDBLOCK);

    reply(ptc_call_id(ptc_event_call(event)), "\"x\"");
    ptc_event_free(event);
    /* Three events follow without further ado: the end of the call, a chunk of output, the next call. Its bytes may be
     * read by a loop that insists on it; it is readable again as long as something waits. */
    for (;;) {
        int kind;
        wait_readable(fd);
        while (read(fd, &byte, 1) == 1) {}
        OK(ptc_run_next_event(run, 0, &event));
        if (event == NULL) continue;
        kind = ptc_event_kind(event);
        if (kind == PTC_EVENT_CALL) break;
        ptc_event_free(event);
    }
    reply(ptc_call_id(ptc_event_call(event)), "null");
    ptc_event_free(event);

    ptc_result_free(end_of(run));
    wait_for_silence(silence);
    /* The run has ended: readable for good, before and after the events are taken, also when its bytes are read. */
    CHECK(is_readable(fd));
    pump(run);
    while (read(fd, &byte, 1) == 1) {}
    CHECK(is_readable(fd));
    CHECK_INT(ptc_run_fd(run), fd);
    ptc_run_free(run);
    CHECK_INT(fcntl(fd, F_GETFD), -1);
    ptc_engine_free(engine);
}

static void a_descriptor_asked_for_after_the_end_is_readable(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, "print(1)");
    ptc_result_free(end_of(run));
    CHECK(is_readable(ptc_run_fd(run)));
    pump(run);
    CHECK(is_readable(ptc_run_fd(run)));
    ptc_run_free(run);
    ptc_engine_free(engine);
}

static void several_runs_are_served_by_one_thread(void)
{
    enum { RUNS = 3 };
    ptc_engine *engine = pulling();
    ptc_run *runs[RUNS];
    uint64_t ids[RUNS] = { 0 };
    char contexts[RUNS];
    struct pollfd fds[RUNS];
    int open = 0, i;
    for (i = 0; i < RUNS; i++) {
        runs[i] = start_with(engine, IMPORT "print(a(n=1))", "", &contexts[i]);
        fds[i].fd = ptc_run_fd(runs[i]);
        fds[i].events = POLLIN;
    }
    /* All of them ask before one of them is answered. */
    while (open < RUNS) {
        CHECK(poll(fds, RUNS, -1) > 0);
        for (i = 0; i < RUNS; i++) {
            ptc_event *event = NULL;
            while (OK(ptc_run_next_event(runs[i], 0, &event)), event != NULL) {
                const ptc_call *call = ptc_event_call(event);
                if (call != NULL) {
                    CHECK(ptc_call_context(call) == &contexts[i]);
                    CHECK_INT(ids[i], 0);
                    ids[i] = ptc_call_id(call);
                    open++;
                }
                ptc_event_free(event);
            }
        }
    }
    for (i = RUNS - 1; i >= 0; i--) {
        char text[16];
        /* By being pulled it was deferred. */
        FAILS(ptc_call_defer(ids[i]), PTC_CODE_STATE, "deferred already");
        CHECK_INT(ptc_call_is_wanted(ids[i]), 1);
        snprintf(text, sizeof text, "run %d", i);
        reply_text(ids[i], text);
        strcat(text, "\n");
        check_end(runs[i], PTC_STATUS_SUCCESS, text);
    }
    ptc_engine_free(engine);
}

static void waiting_for_an_event_takes_no_longer_than_it_may(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, IMPORT "a()");
    ptc_event *event = skip_to(run, PTC_EVENT_CALL);
    uint64_t id = ptc_call_id(ptc_event_call(event));
    ptc_event *none = GARBAGE;
    OK(ptc_run_next_event(run, 0, &none));
    CHECK(none == NULL);
    none = GARBAGE;
    OK(ptc_run_next_event(run, 50, &none));
    CHECK(none == NULL);
    reply(id, "1");
    ptc_event_free(event);
    event = next(run, PTC_EVENT_CALL_END);
    CHECK_HAS(ptc_event_data(event, NULL), "\"state\":\"answered\"");
    ptc_event_free(event);
    check_end(run, PTC_STATUS_SUCCESS, NULL);
    ptc_engine_free(engine);
}

static void *take_all(void *run)
{
    pump(run);
    return NULL;
}

/* More than one thread may pull: each event goes to one of them, and the end to all. */
static void several_threads_may_pull(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, IMPORT "parallel([(a, {}), (b, {}), (c, {})] * 5)");
    pthread_t threads[3];
    int i;
    for (i = 0; i < 3; i++) CHECK_INT(pthread_create(&threads[i], NULL, take_all, run), 0);
    for (i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    check_end(run, PTC_STATUS_SUCCESS, NULL);
    ptc_engine_free(engine);
}

static void chunks_are_the_bytes_that_were_written(void)
{
    static const char expected[] = "a\0b\xff\xc3\xa4";
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, "import os, time\n"
                                 "for piece in (b'a\\0', b'b\\xff\\xc3', b'\\xa4'): os.write(1, piece)\n");
    char seen[64];
    size_t used = 0;
    ptc_event *event;
    for (;;) {
        size_t len = 0;
        const char *data;
        event = next(run, 0);
        data = ptc_event_data(event, &len);
        if (ptc_event_kind(event) == PTC_EVENT_STDOUT) {
            CHECK(used + len <= sizeof seen);
            memcpy(seen + used, data, len);
            used += len;
        }
        if (ptc_event_kind(event) == PTC_EVENT_END) break;
        ptc_event_free(event);
    }
    ptc_event_free(event);
    CHECK_INT(used, sizeof expected - 1);
    CHECK_INT(memcmp(seen, expected, used), 0);
    check_end(run, PTC_STATUS_SUCCESS, NULL);
    ptc_engine_free(engine);
}

static void events_and_calls_outlive_run_and_engine(void)
{
    ptc_engine *engine = pulling();
    char context;
    ptc_run *run = start_with(engine, IMPORT "print('text', flush=True)\na(x='y')", "", &context);
    ptc_event *output = NULL, *called = NULL;
    const ptc_call *call;
    /* Which of the two comes first is a matter of luck. */
    while (output == NULL || called == NULL) {
        ptc_event *event = next(run, 0);
        if (ptc_event_kind(event) == PTC_EVENT_STDOUT) output = event;
        else if (ptc_event_kind(event) == PTC_EVENT_CALL) called = event;
        else ptc_event_free(event);
    }
    call = ptc_event_call(called);
    ptc_run_free(run);
    ptc_engine_free(engine);
    CHECK_STR(ptc_event_data(output, NULL), "text\n");
    CHECK(ptc_event_call(output) == NULL);
    CHECK(ptc_event_call(called) == call);
    CHECK_STR(ptc_call_tool(call, NULL), "a");
    CHECK_HAS(ptc_call_args(call, NULL), "\"y\"");
    CHECK(ptc_call_context(call) == &context);
    CHECK_INT(ptc_call_is_wanted(ptc_call_id(call)), 0);
    FAILS(ptc_call_reply(ptc_call_id(call), "1", 1), PTC_CODE_STATE, "is not open");
    ptc_event_free(called);
    ptc_event_free(output);
}

static void a_call_that_is_open_at_the_end_is_told_as_unanswered(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, IMPORT "a()");
    ptc_event *event = skip_to(run, PTC_EVENT_CALL);
    uint64_t id = ptc_call_id(ptc_event_call(event));
    ptc_event_free(event);
    ptc_run_cancel(run, NULL, 0);
    event = next(run, PTC_EVENT_CALL_END);
    CHECK_HAS(ptc_event_data(event, NULL), "\"state\":\"unanswered\"");
    CHECK_INT(ptc_call_is_wanted(id), 0);
    ptc_event_free(event);
    event = skip_to(run, PTC_EVENT_END);
    CHECK_HAS(ptc_event_data(event, NULL), "\"status\":\"interrupted\"");
    ptc_event_free(event);
    FAILS(ptc_call_reply(id, "1", 1), PTC_CODE_STATE, "is not open");
    check_end(run, PTC_STATUS_INTERRUPTED, NULL);
    ptc_engine_free(engine);
}

static void without_anybody_to_pull_calls_fail(void)
{
    ptc_engine *engine = pulling();
    ptc_result *result = execute(engine, IMPORT "print(a())");
    check_result(result, PTC_STATUS_SUCCESS, "{'error': 'nobody serves this call");
    ptc_engine_free(engine);
}

/* ---- pushed ---- */

struct pushed {
    struct counter ends;
    char log[8000];
    ptc_run *run;
};

static void log_event(void *user_data, const ptc_event *event)
{
    struct pushed *pushed = user_data;
    size_t used;
    pthread_mutex_lock(&pushed->ends.lock);
    used = strlen(pushed->log);
    snprintf(pushed->log + used, sizeof pushed->log - used, "%d %s\n", ptc_event_kind(event),
             ptc_event_data(event, NULL));
    pthread_mutex_unlock(&pushed->ends.lock);
    CHECK((ptc_event_call(event) != NULL) == (ptc_event_kind(event) == PTC_EVENT_CALL));
    if (ptc_event_kind(event) == PTC_EVENT_END) count(&pushed->ends);
}

static void answer_null(void *user_data, const ptc_call *call)
{
    (void)user_data;
    reply(ptc_call_id(call), "null");
}

static void events_are_pushed_in_order(void)
{
    int threads;
    for (threads = 0; threads <= 3; threads += 3) {
        struct pushed pushed = { COUNTER, "", NULL };
        ptc_host host = make_host(answer_null, log_event, &pushed, threads);
        ptc_engine *engine = make_engine(CONFIG, &host);
        static const char *const all[] = { "2 line 0", "\n4 {", "\n5 {", "2 line 1", "\n4 {", "\n5 {",
                                           "2 line 2", "\n4 {", "\n5 {", "2 line 3", "\n4 {", "\n5 {",
                                           "2 line 4", "\n4 {", "\n5 {", "\n6 {\"status\":\"success\"", NULL };
        check_prints(engine, IMPORT "for i in range(5):\n    print('line', i, flush=True)\n    a()",
                     "line 0\nline 1\nline 2\nline 3\nline 4\n");
        /* With threads of the engine the last event may come a moment after the result. */
        wait_for(&pushed.ends, 1);
        CHECK(strncmp(pushed.log, "1 {\"pid\":", 9) == 0);
        check_order(pushed.log, all);
        ptc_engine_free(engine);
    }
}

/* A host may be told of the output as it comes and pull its calls all the same. */
static void events_are_pushed_to_a_host_that_pulls_its_calls(void)
{
    struct pushed pushed = { COUNTER, "", NULL };
    ptc_host host = make_host(NULL, log_event, &pushed, 1);
    ptc_engine *engine = make_engine(CONFIG, &host);
    ptc_run *run = start(engine, IMPORT "print(a())");
    pump(run);
    check_end(run, PTC_STATUS_SUCCESS, "None\n");
    wait_for(&pushed.ends, 1);
    CHECK_HAS(pushed.log, "\"state\":\"answered\"");
    ptc_engine_free(engine);
}

static void a_host_with_dispatch_does_not_pull(void)
{
    ptc_engine *engine = dispatching(answer_null, NULL, 1);
    ptc_run *run = start(engine, IMPORT "a()");
    ptc_event *event = GARBAGE;
    FAILS(ptc_run_next_event(run, 0, &event), PTC_CODE_STATE, "dispatch");
    CHECK(event == NULL);
    FAILS(ptc_run_next_event(run, -1, &event), PTC_CODE_STATE, "on_event");
    check_end(run, PTC_STATUS_SUCCESS, NULL);
    ptc_engine_free(engine);
}

static void cancel_on_output(void *user_data, const ptc_event *event)
{
    struct pushed *pushed = user_data;
    ptc_result *result = GARBAGE;
    if (ptc_event_kind(event) != PTC_EVENT_STDOUT) return;
    wait_for(&pushed->ends, 1);
    FAILS(ptc_run_wait(pushed->run, 0, &result), PTC_CODE_STATE, "cannot wait for its own run");
    CHECK(result == NULL);
    ptc_run_cancel(pushed->run, "seen enough", 11);
}

static void a_run_may_be_cancelled_inside_an_event(void)
{
    struct pushed pushed = { COUNTER, "", NULL };
    ptc_host host = make_host(NULL, cancel_on_output, &pushed, 1);
    ptc_engine *engine = make_engine(CONFIG, &host);
    pushed.run = start(engine, "import time\nprint('first', flush=True)\ntime.sleep(1000)");
    count(&pushed.ends);
    check_end(pushed.run, PTC_STATUS_INTERRUPTED, "first\n[execution interrupted - seen enough]");
    ptc_engine_free(engine);
}

const struct test event_tests[] = {
    TEST(a_run_is_served_with_poll),
    TEST(the_descriptor_is_one_for_any_loop),
    TEST(a_descriptor_asked_for_after_the_end_is_readable),
    TEST(several_runs_are_served_by_one_thread),
    TEST(waiting_for_an_event_takes_no_longer_than_it_may),
    TEST(several_threads_may_pull),
    TEST(chunks_are_the_bytes_that_were_written),
    TEST(events_and_calls_outlive_run_and_engine),
    TEST(a_call_that_is_open_at_the_end_is_told_as_unanswered),
    TEST(without_anybody_to_pull_calls_fail),
    TEST(events_are_pushed_in_order),
    TEST(events_are_pushed_to_a_host_that_pulls_its_calls),
    TEST(a_host_with_dispatch_does_not_pull),
    TEST(a_run_may_be_cancelled_inside_an_event),
    END_OF_TESTS
};
