/* Closing and freeing an engine, from outside and from its own callbacks. */
#include "check.h"

#include <sched.h>
#include <unistd.h>

struct owner {
    ptc_engine *engine;
    ptc_run *run;
    pthread_t thread;
    struct counter ready, inside, dropped;
    int callbacks;
    int mode;
};

static void on_drop(void *user_data)
{
    struct owner *owner = user_data;
    owner->callbacks = -1;
    count(&owner->dropped);
}

/* A host whose `drop` is counted, and after which no callback may come. */
static ptc_engine *owned(struct owner *owner, ptc_dispatch_fn dispatch, ptc_event_fn on_event, int threads)
{
    ptc_host host = make_host(dispatch, on_event, owner, threads);
    host.drop = on_drop;
    return make_engine(CONFIG, &host);
}

#define OWNER { NULL, NULL, pthread_self(), COUNTER, COUNTER, COUNTER, 0, 0 }

static void count_calls(void *user_data, const ptc_call *call)
{
    struct owner *owner = user_data;
    CHECK(owner->callbacks >= 0);
    owner->callbacks++;
    reply(ptc_call_id(call), "null");
}

static void a_closed_engine_starts_nothing(void)
{
    struct owner owner = OWNER;
    ptc_engine *engine = owned(&owner, count_calls, NULL, 0);
    ptc_run *run = GARBAGE;
    ptc_result *result = GARBAGE;
    char *text = NULL;
    check_prints(engine, IMPORT "print(a())", "None\n");
    CHECK_INT(owner.dropped.value, 0);
    OK(ptc_engine_close(engine, 0));
    CHECK_INT(owner.dropped.value, 1);
    FAILS(ptc_run_start(engine, "1", 1, NULL, 0, NULL, &run), PTC_CODE_STATE, "the engine is closed");
    CHECK(run == NULL);
    FAILS(ptc_execute(engine, "1", 1, NULL, 0, NULL, &result), PTC_CODE_STATE, "the engine is closed");
    CHECK(result == NULL);
    /* Closing again is fine, and the engine can still say what it was. */
    OK(ptc_engine_close(engine, -1));
    OK(ptc_engine_definition(engine, "text", &text, NULL));
    ptc_string_free(text);
    ptc_engine_free(engine);
    CHECK_INT(owner.dropped.value, 1);
}

static void closing_cancels_the_runs(void)
{
    struct owner owner = OWNER;
    ptc_engine *engine = owned(&owner, count_calls, NULL, 1);
    struct fifo fifo = make_fifo("started");
    char code[1000];
    ptc_run *run = start(engine, with_fifo(code, sizeof code, "import time\ntime.sleep(1000)", &fifo));
    int fd = hear(&fifo);
    ptc_result *result = NULL;
    OK(ptc_engine_close(engine, -1));
    /* It has ended by now. */
    OK(ptc_run_wait(run, 0, &result));
    check_result(result, PTC_STATUS_INTERRUPTED, "[execution interrupted - the engine was closed]");
    wait_for_silence(fd);
    CHECK_INT(owner.dropped.value, 1);
    ptc_run_free(run);
    ptc_engine_free(engine);
}

/* A script that takes its time to die: it says so, and goes on until it is allowed to. */
static void a_close_whose_time_was_not_enough_may_be_repeated(void)
{
    struct owner owner = OWNER;
    ptc_host host = make_host(count_calls, NULL, &owner, 1);
    ptc_engine *engine;
    struct fifo fifo = make_fifo("started");
    struct fifo go = make_fifo("go");
    char code[1000];
    ptc_run *run, *none = GARBAGE;
    FILE *file;
    int fd;
    host.drop = on_drop;
    engine = make_engine("{\"code_execution\": {\"kill_grace\": 1000}}", &host);
    /* It must ignore the signal before it tells that it has started. */
    snprintf(code, sizeof code,
             "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nimport os\n"
             "tell = open('%s', 'w')\ntell.write('.')\ntell.flush()\nopen('%s').read()\nos._exit(0)\n",
             fifo.path, go.path);
    run = start(engine, code);
    fd = hear(&fifo);
    FAILS(ptc_engine_close(engine, 0), PTC_CODE_STATE, "not ended yet");
    FAILS(ptc_engine_close(engine, 20), PTC_CODE_STATE, "not ended yet");
    CHECK_INT(owner.dropped.value, 0);
    FAILS(ptc_run_start(engine, "1", 1, NULL, 0, NULL, &none), PTC_CODE_STATE, "the engine is closed");
    file = fopen(go.path, "w");
    CHECK(file != NULL);
    fclose(file);
    OK(ptc_engine_close(engine, -1));
    CHECK_INT(owner.dropped.value, 1);
    check_end(run, PTC_STATUS_INTERRUPTED, NULL);
    wait_for_silence(fd);
    remove(go.path);
    ptc_engine_free(engine);
}

static void stay_inside(void *user_data, const ptc_call *call)
{
    struct owner *owner = user_data;
    (void)call;
    count(&owner->inside);
    wait_for(&owner->ready, 1);
    CHECK_INT(value_of(&owner->dropped), 0);
}

static void *close_now(void *argument)
{
    struct owner *owner = argument;
    OK(ptc_engine_close(owner->engine, -1));
    CHECK_INT(value_of(&owner->dropped), 1);
    return NULL;
}

static void closing_waits_for_callbacks(void)
{
    struct owner owner = OWNER;
    pthread_t closer;
    ptc_run *run;
    owner.engine = owned(&owner, stay_inside, NULL, 1);
    run = start(owner.engine, IMPORT "a()");
    wait_for(&owner.inside, 1);
    FAILS(ptc_engine_close(owner.engine, 0), PTC_CODE_STATE, "again");
    check_end(run, PTC_STATUS_INTERRUPTED, NULL);
    /* The run has ended and the callback has not returned: closing is not done. */
    FAILS(ptc_engine_close(owner.engine, 0), PTC_CODE_STATE, "1 callbacks have not returned yet");
    CHECK_INT(pthread_create(&closer, NULL, close_now, &owner), 0);
    count(&owner.ready);
    pthread_join(closer, NULL);
    ptc_engine_free(owner.engine);
    CHECK_INT(owner.dropped.value, 1);
}

static void close_inside(void *user_data, const ptc_call *call)
{
    struct owner *owner = user_data;
    FAILS(ptc_engine_close(owner->engine, 0), PTC_CODE_STATE, "a callback cannot close its own engine");
    FAILS(ptc_engine_close(owner->engine, -1), PTC_CODE_STATE, "a callback cannot close its own engine");
    reply(ptc_call_id(call), "\"refused\"");
}

static void a_callback_cannot_close_its_own_engine(void)
{
    int threads;
    for (threads = 0; threads <= 1; threads++) {
        struct owner owner = OWNER;
        owner.engine = owned(&owner, close_inside, NULL, threads);
        /* It was not closed, not even to new runs. */
        check_prints(owner.engine, IMPORT "print(a())", "refused\n");
        check_prints(owner.engine, IMPORT "print(a())", "refused\n");
        ptc_engine_free(owner.engine);
        CHECK_INT(owner.dropped.value, 1);
    }
}

static void close_another(void *user_data, const ptc_call *call)
{
    ptc_engine *other = dispatching(close_inside, NULL, 0);
    (void)user_data;
    OK(ptc_engine_close(other, -1));
    ptc_engine_free(other);
    reply(ptc_call_id(call), "\"closed\"");
}

static void a_callback_may_close_another_engine(void)
{
    ptc_engine *engine = dispatching(close_another, NULL, 0);
    check_prints(engine, IMPORT "print(a())", "closed\n");
    ptc_engine_free(engine);
}

/* mode 0: says nothing more. 1: answers, 2: defers, before and after. */
static void free_inside(void *user_data, const ptc_call *call)
{
    struct owner *owner = user_data;
    uint64_t id = ptc_call_id(call);
    CHECK(owner->callbacks == 0);
    owner->callbacks++;
    if (owner->mode == 2) OK(ptc_call_defer(id));
    ptc_engine_free(owner->engine);
    CHECK_STR(ptc_call_tool(call, NULL), "a");
    if (owner->mode == 1) ptc_error_free(ptc_call_reply(id, "1", 1));
    CHECK_INT(value_of(&owner->dropped), 0);
}

static void an_engine_may_be_freed_inside_dispatch(void)
{
    static const char code[] = IMPORT "a()\nimport time\ntime.sleep(1000)";
    int round;
    for (round = 0; round < 6; round++) {
        struct owner owner = OWNER;
        ptc_result *result = NULL;
        ptc_run *run;
        owner.mode = round % 3;
        owner.engine = owned(&owner, free_inside, NULL, round < 3 ? 0 : 2);
        if (round % 2 == 0) {
            OK(ptc_execute(owner.engine, code, strlen(code), NULL, 0, NULL, &result));
            check_result(result, PTC_STATUS_INTERRUPTED, "[execution interrupted - the engine was closed]");
        } else {
            run = start(owner.engine, code);
            check_end(run, PTC_STATUS_INTERRUPTED, "[execution interrupted - the engine was closed]");
        }
        wait_for(&owner.dropped, 1);
        CHECK_INT(owner.callbacks, -1);
    }
}

static void free_inside_event(void *user_data, const ptc_event *event)
{
    struct owner *owner = user_data;
    CHECK(owner->callbacks >= 0);
    if (ptc_event_kind(event) == PTC_EVENT_STDOUT && owner->callbacks++ == 0) ptc_engine_free(owner->engine);
}

static void an_engine_may_be_freed_inside_an_event(void)
{
    int threads;
    for (threads = 0; threads <= 1; threads++) {
        struct owner owner = OWNER;
        ptc_run *run;
        owner.engine = owned(&owner, NULL, free_inside_event, threads);
        run = start(owner.engine, "import time\nprint('x', flush=True)\ntime.sleep(1000)");
        check_end(run, PTC_STATUS_INTERRUPTED, "x\n[execution interrupted - the engine was closed]");
        wait_for(&owner.dropped, 1);
    }
}

/* `drop` may do what it likes with the library. */
static void use_library_in_drop(void *user_data)
{
    struct owner *owner = user_data;
    ptc_engine *another = pulling();
    check_prints(another, "print(1)", "1\n");
    ptc_engine_free(another);
    count(&owner->dropped);
}

static void drop_may_use_the_library(void)
{
    struct owner owner = OWNER;
    ptc_host host = make_host(count_calls, NULL, &owner, 1);
    host.drop = use_library_in_drop;
    ptc_engine_free(make_engine(CONFIG, &host));
    CHECK_INT(owner.dropped.value, 1);
}

static void a_host_without_callbacks_is_dropped_too(void)
{
    struct owner owner = OWNER;
    ptc_engine *engine = owned(&owner, NULL, NULL, 0);
    check_prints(engine, "print(1)", "1\n");
    CHECK_INT(owner.dropped.value, 0);
    ptc_engine_free(engine);
    CHECK_INT(owner.dropped.value, 1);
}

/* Freed by whoever happens to hold it, while runs are at every stage. */
static void engines_may_be_freed_at_any_moment(void)
{
    int round;
    for (round = 0; round < 12; round++) {
        struct owner owner = OWNER;
        ptc_engine *engine = owned(&owner, stay_inside, NULL, round % 3);
        ptc_run *runs[3];
        int i;
        count(&owner.ready);
        for (i = 0; i < 3; i++) runs[i] = start(engine, IMPORT "a()\nimport time\ntime.sleep(1000)");
        for (i = 0; i < round; i++) sched_yield();
        if (round >= 6 && round % 3 > 0) wait_for(&owner.inside, round - 5 < 3 ? round - 5 : 3);
        ptc_engine_free(engine);
        CHECK_INT(owner.dropped.value, 1);
        for (i = 0; i < 3; i++) check_end(runs[i], PTC_STATUS_INTERRUPTED, "the engine was closed");
    }
}

const struct test engine_tests[] = {
    TEST(a_closed_engine_starts_nothing),
    TEST(closing_cancels_the_runs),
    TEST(a_close_whose_time_was_not_enough_may_be_repeated),
    TEST(closing_waits_for_callbacks),
    TEST(a_callback_cannot_close_its_own_engine),
    TEST(a_callback_may_close_another_engine),
    TEST(an_engine_may_be_freed_inside_dispatch),
    TEST(an_engine_may_be_freed_inside_an_event),
    TEST(drop_may_use_the_library),
    TEST(a_host_without_callbacks_is_dropped_too),
    TEST(engines_may_be_freed_at_any_moment),
    END_OF_TESTS
};
