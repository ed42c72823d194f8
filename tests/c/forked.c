/* A host that forks: in the child every handle of the parent is refused and can be forgotten, and new ones work. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

struct parent {
    ptc_engine *engine;
    ptc_run *running, *ended;
    ptc_event *event;
    ptc_result *result;
    ptc_error *error;
    uint64_t call;
    int dropped;
};

static void on_drop(void *user_data)
{
    ++((struct parent *)user_data)->dropped;
}

/* A child that has the lock of a thread which exists in the parent only would hang here. */
static void in_the_child(struct parent *parent)
{
    ptc_run *run = GARBAGE;
    ptc_result *result = GARBAGE;
    ptc_event *event = GARBAGE;
    char *text = GARBAGE;
    static const char *const mine = "belongs to the parent";

    alarm(100);
    FAILS(ptc_engine_definition(parent->engine, "text", &text, NULL), PTC_CODE_STATE, mine);
    FAILS(ptc_run_start(parent->engine, "1", 1, NULL, 0, NULL, &run), PTC_CODE_STATE, mine);
    FAILS(ptc_execute(parent->engine, "1", 1, NULL, 0, NULL, &result), PTC_CODE_STATE, mine);
    CHECK(text == NULL && run == NULL && result == NULL);
    FAILS(ptc_run_wait(parent->running, -1, &result), PTC_CODE_STATE, mine);
    FAILS(ptc_run_wait(parent->ended, 0, &result), PTC_CODE_STATE, mine);
    FAILS(ptc_run_next_event(parent->running, -1, &event), PTC_CODE_STATE, mine);
    CHECK(result == NULL && event == NULL);
    CHECK_INT(ptc_run_fd(parent->running), -1);
    ptc_run_cancel(parent->running, "from the child", 14);
    FAILS(ptc_call_reply(parent->call, "1", 1), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_reply_text(parent->call, "1", 1), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_fail(parent->call, "1", 1), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_defer(parent->call), PTC_CODE_STATE, "is not open");
    CHECK_INT(ptc_call_is_wanted(parent->call), 0);
    FAILS(ptc_engine_close(parent->engine, -1), PTC_CODE_STATE, mine);

    /* What is only memory can still be read. */
    CHECK_INT(ptc_call_id(ptc_event_call(parent->event)), parent->call);
    CHECK_STR(ptc_result_output(parent->result, NULL), "ended\n");
    CHECK_INT(ptc_error_code(parent->error), PTC_CODE_CONFIG);

    ptc_run_free(ptc_run_retain(parent->running));
    ptc_run_free(parent->running);
    ptc_run_free(parent->ended);
    ptc_event_free(parent->event);
    ptc_result_free(parent->result);
    ptc_error_free(parent->error);
    ptc_engine_free(parent->engine);
    CHECK_INT(parent->dropped, 0);
}

static void use_a_new_engine(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, IMPORT "print(a())");
    pump(run);
    check_end(run, PTC_STATUS_SUCCESS, "None\n");
    ptc_engine_free(engine);
}

static void wait_for_child(pid_t child)
{
    int status = 0;
    CHECK(child > 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

static void handles_are_refused_and_forgotten_in_a_child(void)
{
    struct parent parent = { NULL, NULL, NULL, NULL, NULL, NULL, 0, 0 };
    ptc_host host = make_host(NULL, NULL, &parent, 0);
    pid_t child;
    host.drop = on_drop;
    parent.engine = make_engine(CONFIG, &host);
    parent.ended = start(parent.engine, "print('ended')");
    parent.result = end_of(parent.ended);
    parent.error = ptc_engine_new("{", 1, NULL, &(ptc_engine *){ NULL });
    parent.running = start(parent.engine, IMPORT "print(a())");
    CHECK(ptc_run_fd(parent.running) >= 0);
    parent.event = skip_to(parent.running, PTC_EVENT_CALL);
    parent.call = ptc_call_id(ptc_event_call(parent.event));

    fflush(stdout);
    child = fork();
    if (child == 0) {
        in_the_child(&parent);
        use_a_new_engine();
        fflush(stdout);
        _exit(0);
    }
    wait_for_child(child);

    /* The parent has not noticed anything. */
    CHECK_INT(ptc_call_is_wanted(parent.call), 1);
    reply(parent.call, "\"answered\"");
    ptc_event_free(parent.event);
    check_end(parent.running, PTC_STATUS_SUCCESS, "answered\n");
    ptc_run_free(parent.ended);
    ptc_result_free(parent.result);
    ptc_error_free(parent.error);
    ptc_engine_free(parent.engine);
    CHECK_INT(parent.dropped, 1);
}

/* Ids go on where the parent was, so that an answer in the child can never mean another call. */
static void fork_in_callback(void *user_data, const ptc_call *call)
{
    struct parent *parent = user_data;
    uint64_t id = ptc_call_id(call);
    pid_t child;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        FAILS(ptc_call_reply(id, "\"child\"", 7), PTC_CODE_STATE, "is not open");
        ptc_engine_free(parent->engine);
        CHECK_INT(parent->dropped, 0);
        use_a_new_engine();
        fflush(stdout);
        _exit(0);
    }
    wait_for_child(child);
    reply(id, "\"parent\"");
}

static void a_callback_may_fork(void)
{
    int threads;
    for (threads = 0; threads <= 2; threads += 2) {
        struct parent parent = { NULL, NULL, NULL, NULL, NULL, NULL, 0, 0 };
        ptc_host host = make_host(fork_in_callback, NULL, &parent, threads);
        host.drop = on_drop;
        parent.engine = make_engine(CONFIG, &host);
        check_prints(parent.engine, IMPORT "print(a())", "parent\n");
        ptc_engine_free(parent.engine);
        CHECK_INT(parent.dropped, 1);
    }
}

static struct counter stop = COUNTER;

static void *keep_busy(void *engine)
{
    while (value_of(&stop) == 0) {
        ptc_run *run = start(engine, IMPORT "parallel([(a, {}), (b, {}), (c, {})] * 10)");
        pump(run);
        check_end(run, PTC_STATUS_SUCCESS, NULL);
    }
    return NULL;
}

/* Whatever the threads are doing at that moment. */
static void a_busy_host_may_fork(void)
{
    ptc_engine *engine = make_engine("{\"code_execution\": {\"max_tool_calls\": 1000}, " TOOLS "}", NULL);
    pthread_t threads[2];
    int i;
    for (i = 0; i < 2; i++) CHECK_INT(pthread_create(&threads[i], NULL, keep_busy, engine), 0);
    for (i = 0; i < 10; i++) {
        pid_t child;
        ptc_run *run = GARBAGE;
        fflush(stdout);
        child = fork();
        if (child == 0) {
            alarm(100);
            FAILS(ptc_run_start(engine, "1", 1, NULL, 0, NULL, &run), PTC_CODE_STATE, "");
            FAILS(ptc_call_reply(1, "1", 1), PTC_CODE_STATE, "");
            ptc_engine_free(engine);
            use_a_new_engine();
            _exit(0);
        }
        wait_for_child(child);
    }
    count(&stop);
    for (i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    ptc_engine_free(engine);
}

const struct test fork_tests[] = {
    TEST(handles_are_refused_and_forgotten_in_a_child),
    TEST(a_callback_may_fork),
    TEST(a_busy_host_may_fork),
    END_OF_TESTS
};
