/* Tool calls: on which thread they come, how they are answered, and what a wrong answer does. */
#include "check.h"

#include <sched.h>

/* ---- on which threads ---- */

struct lent {
    pthread_t owner;
    int is_inside;
    int calls;
    int events;
};

static void lent_dispatch(void *user_data, const ptc_call *call)
{
    struct lent *lent = user_data;
    CHECK(pthread_equal(pthread_self(), lent->owner));
    CHECK(lent->is_inside);
    lent->calls++;
    reply(ptc_call_id(call), "1");
}

static void lent_event(void *user_data, const ptc_event *event)
{
    struct lent *lent = user_data;
    CHECK(pthread_equal(pthread_self(), lent->owner));
    CHECK(lent->is_inside);
    CHECK(ptc_event_kind(event) != 0);
    lent->events++;
}

static void without_threads_callbacks_come_inside_a_wait_only(void)
{
    struct lent lent = { pthread_self(), 0, 0, 0 };
    ptc_host host = make_host(lent_dispatch, lent_event, &lent, 0);
    ptc_engine *engine = make_engine(CONFIG, &host);
    struct fifo fifo = make_fifo("called");
    ptc_result *result = NULL;
    char code[1000];
    ptc_run *run;
    int fd;

    lent.is_inside = 1;
    check_prints(engine, IMPORT "print(parallel([(a, {}), (b, {}), (c, {})]))", "[1, 1, 1]\n");
    CHECK_INT(lent.calls, 3);
    CHECK(lent.events >= 2 + 2 * 3);

    /* A run that nobody waits for goes on until its first call, and no further. */
    lent.is_inside = lent.calls = 0;
    run = start(engine, with_fifo(code, sizeof code, "print(a(), b())", &fifo));
    fd = hear(&fifo);
    CHECK_INT(lent.calls, 0);
    lent.is_inside = 1;
    OK(ptc_run_wait(run, -1, &result));
    check_result(result, PTC_STATUS_SUCCESS, "1 1\n");
    CHECK_INT(lent.calls, 2);
    wait_for_silence(fd);
    ptc_run_free(run);
    ptc_engine_free(engine);
}

struct crowd {
    pthread_t owner;
    struct counter inside;
    int barrier;
    pthread_t threads[64];
    int different;
};

static void remember_thread(struct crowd *crowd)
{
    int i;
    pthread_mutex_lock(&crowd->inside.lock);
    for (i = 0; i < crowd->different && !pthread_equal(crowd->threads[i], pthread_self()); i++) {}
    if (i == crowd->different && i < 64) crowd->threads[crowd->different++] = pthread_self();
    pthread_mutex_unlock(&crowd->inside.lock);
}

static void crowd_dispatch(void *user_data, const ptc_call *call)
{
    struct crowd *crowd = user_data;
    CHECK(!pthread_equal(pthread_self(), crowd->owner));
    remember_thread(crowd);
    /* Nobody gets past here before the others of this group of calls have come. */
    wait_for(&crowd->inside, (count(&crowd->inside) + crowd->barrier - 1) / crowd->barrier * crowd->barrier);
    reply(ptc_call_id(call), ptc_call_args(call, NULL));
}

static void engine_threads_serve_that_many_calls_at_once(void)
{
    struct crowd crowd = { pthread_self(), COUNTER, 4, { 0 }, 0 };
    ptc_engine *engine = dispatching(crowd_dispatch, &crowd, 4);
    check_prints(engine, IMPORT "print([r['n'] for r in parallel([lambda n=n: a(n=n) for n in range(4)])])",
                 "[0, 1, 2, 3]\n");
    CHECK_INT(crowd.inside.value, 4);
    CHECK_INT(crowd.different, 4);
    /* Further calls and runs are served by the same four. */
    check_prints(engine, IMPORT "print(sum(r['n'] for r in parallel([lambda n=n: a(n=n) for n in range(40)])))", "780\n");
    CHECK_INT(crowd.inside.value, 44);
    CHECK_INT(crowd.different, 4);
    ptc_engine_free(engine);
}

static void engine_threads_serve_several_runs_at_once(void)
{
    struct crowd crowd = { pthread_self(), COUNTER, 3, { 0 }, 0 };
    ptc_engine *engine = dispatching(crowd_dispatch, &crowd, 3);
    ptc_run *runs[3];
    int i;
    for (i = 0; i < 3; i++) runs[i] = start(engine, IMPORT "print(a(n=7)['n'])");
    /* Nobody waits here: the calls are served all the same. */
    wait_for(&crowd.inside, 3);
    for (i = 0; i < 3; i++) check_end(runs[i], PTC_STATUS_SUCCESS, "7\n");
    ptc_engine_free(engine);
}

/* ---- what a call is ---- */

static void look_at_call(void *user_data, const ptc_call *call)
{
    size_t len = 0;
    const char *tool = ptc_call_tool(call, &len), *args;
    CHECK_STR(tool, "b");
    CHECK_INT(len, 1);
    CHECK(ptc_call_tool(call, NULL) == tool);
    args = ptc_call_args(call, &len);
    CHECK_INT(len, strlen(args));
    CHECK(ptc_call_args(call, NULL) == args);
    CHECK(ptc_call_context(call) == user_data);
    CHECK(ptc_call_id(call) != 0);
    CHECK_INT(ptc_call_is_wanted(ptc_call_id(call)), 1);
    OK(ptc_call_reply_text(ptc_call_id(call), args, len));
}

static void a_call_tells_tool_arguments_and_context(void)
{
    char context;
    ptc_engine *engine = dispatching(look_at_call, &context, 0);
    ptc_run *run = start_with(engine, IMPORT "import json\nprint(json.loads(b(x='ä\\0\"', n=2**70, l=[None, True])))",
                              "", &context);
    check_end(run, PTC_STATUS_SUCCESS, "{'x': 'ä\\x00\"', 'n': 1180591620717411303424, 'l': [None, True]}\n");
    ptc_engine_free(engine);
}

struct ids {
    pthread_mutex_t lock;
    uint64_t seen[256];
    int count;
};

static void collect_id(void *user_data, const ptc_call *call)
{
    struct ids *ids = user_data;
    uint64_t id = ptc_call_id(call);
    int i;
    pthread_mutex_lock(&ids->lock);
    for (i = 0; i < ids->count; i++) CHECK(ids->seen[i] != id);
    CHECK(id != 0 && ids->count < 256);
    ids->seen[ids->count++] = id;
    pthread_mutex_unlock(&ids->lock);
    reply(id, "0");
}

static void ids_are_never_used_again(void)
{
    struct ids ids = { PTHREAD_MUTEX_INITIALIZER, { 0 }, 0 };
    const char *code = IMPORT "for i in range(10): a()";
    ptc_engine *first = dispatching(collect_id, &ids, 0), *second = dispatching(collect_id, &ids, 2);
    ptc_run *one = start(second, code), *two = start(second, code);
    int i;
    check_prints(first, code, "");
    check_end(one, PTC_STATUS_SUCCESS, NULL);
    check_end(two, PTC_STATUS_SUCCESS, NULL);
    ptc_engine_free(first);
    first = dispatching(collect_id, &ids, 0);
    check_prints(first, code, "");
    CHECK_INT(ids.count, 40);
    for (i = 0; i < ids.count; i++) {
        CHECK_INT(ptc_call_is_wanted(ids.seen[i]), 0);
        FAILS(ptc_call_reply(ids.seen[i], "1", 1), PTC_CODE_STATE, "is not open");
    }
    ptc_engine_free(first);
    ptc_engine_free(second);
}

/* ---- answers ---- */

static const char *value_of_argument(const ptc_call *call)
{
    const char *args = ptc_call_args(call, NULL);
    return strstr(args, "\"v\":") + 4;
}

/* "a" answers with the JSON text that it was given, "b" with a text, "c" fails. */
static void answer_inside(void *user_data, const ptc_call *call)
{
    uint64_t id = ptc_call_id(call);
    const char *tool = ptc_call_tool(call, NULL), *value = value_of_argument(call);
    size_t len = strlen(value) - 1;
    (void)user_data;
    while (*value == ' ') value++, len--;
    if (*tool == 'a') OK(ptc_call_reply(id, value, len));
    if (*tool == 'b') OK(ptc_call_reply_text(id, value, len));
    if (*tool == 'c') OK(ptc_call_fail(id, value, len));
    CHECK_INT(ptc_call_is_wanted(id), 0);
}

static void answers_inside_dispatch(void)
{
    ptc_engine *engine = dispatching(answer_inside, NULL, 0);
    check_prints(engine,
                 IMPORT
                 "for v in (None, True, 0, -1.5, 2**70, 'ä\\0', [], {}, [1, {'k': [None]}], '{\"x\": 1}'):\n"
                 "    got = a(v=v)\n"
                 "    if got != v or type(got) is not type(v): print('a', v, got)\n"
                 "print(repr(b(v={'k': 1})).replace(' ', ''), repr(b(v=1)), repr(b(v=None)))\n"
                 "print(c(v=12))\n",
                 "'{\"k\":1}' '1' 'null'\n{'error': '12'}\n");
    ptc_engine_free(engine);
}

static void failed_calls_raise_where_that_is_configured(void)
{
    ptc_host host = make_host(answer_inside, NULL, NULL, 0);
    ptc_engine *engine =
        make_engine("{\"code_execution\": {\"on_tool_error\": \"raise\"}, " TOOLS "}", &host);
    check_prints(engine, IMPORT "try: c(v='no luck')\nexcept ToolError as e: print(e.tool, e.message)",
                 "c \"no luck\"\n");
    ptc_engine_free(engine);
}

/* Answers that cannot be given. Each leaves the script with a failed call, and the call closed. */
static void answer_wrongly(void *user_data, const ptc_call *call)
{
    static const char bad_utf8[] = { '"', '\xff', '"' };
    uint64_t id = ptc_call_id(call);
    int which = atoi(value_of_argument(call));
    char *large;
    (void)user_data;
    switch (which) {
    case 0: FAILS(ptc_call_reply(id, "{'a': 1}", 8), PTC_CODE_INVALID_ARGUMENT, "not valid JSON"); break;
    case 1: FAILS(ptc_call_reply(id, "", 0), PTC_CODE_INVALID_ARGUMENT, "not valid JSON"); break;
    case 2: FAILS(ptc_call_reply(id, NULL, 0), PTC_CODE_INVALID_ARGUMENT, "not valid JSON"); break;
    case 3: FAILS(ptc_call_reply(id, "1 2", 3), PTC_CODE_INVALID_ARGUMENT, "not valid JSON"); break;
    case 4: FAILS(ptc_call_reply(id, "NaN", 3), PTC_CODE_INVALID_ARGUMENT, "not valid JSON"); break;
    case 5: FAILS(ptc_call_reply(id, "1\0", 2), PTC_CODE_INVALID_ARGUMENT, "not valid JSON"); break;
    case 6: FAILS(ptc_call_reply(id, bad_utf8, 3), PTC_CODE_INVALID_ARGUMENT, "UTF-8 at byte 1"); break;
    case 7: FAILS(ptc_call_reply(id, NULL, 5), PTC_CODE_INVALID_ARGUMENT, "json is NULL"); break;
    case 8: FAILS(ptc_call_reply_text(id, bad_utf8, 3), PTC_CODE_INVALID_ARGUMENT, "UTF-8 at byte 1"); break;
    case 9: FAILS(ptc_call_reply_text(id, NULL, 5), PTC_CODE_INVALID_ARGUMENT, "text is NULL"); break;
    case 10: FAILS(ptc_call_reply_text(id, "x", (size_t)-1), PTC_CODE_INVALID_ARGUMENT, "larger"); break;
    case 11: FAILS(ptc_call_fail(id, NULL, 5), PTC_CODE_INVALID_ARGUMENT, "message is NULL"); break;
    case 12:
        large = malloc(5000);
        CHECK(large != NULL);
        memset(large, '7', 5000);
        FAILS(ptc_call_reply(id, large, 5000), PTC_CODE_INVALID_ARGUMENT, "max_message_bytes");
        free(large);
        break;
    default: CHECK(0);
    }
    CHECK_INT(ptc_call_is_wanted(id), 0);
    FAILS(ptc_call_reply(id, "1", 1), PTC_CODE_STATE, "is not open");
}

static void wrong_answers_are_refused_and_fail_the_call(void)
{
    ptc_host host = make_host(answer_wrongly, NULL, NULL, 0);
    ptc_engine *engine =
        make_engine("{\"code_execution\": {\"max_message_bytes\": 4096}, " TOOLS "}", &host);
    ptc_result *result = execute(engine, IMPORT "for v in range(13):\n"
                                                "    r = a(v=v)\n"
                                                "    print(v, list(r) == ['error'] and bool(r['error']))");
    const char *json = ptc_result_json(result, NULL);
    CHECK_HAS(json, "\"state\":\"failed\"");
    CHECK_HAS_NOT(json, "\"state\":\"answered\"");
    CHECK_HAS_NOT(json, "\"state\":\"unanswered\"");
    check_result(result, PTC_STATUS_SUCCESS,
                 "0 True\n1 True\n2 True\n3 True\n4 True\n5 True\n6 True\n7 True\n8 True\n9 True\n10 True\n11 True\n"
                 "12 True\n");
    ptc_engine_free(engine);
}

static void odd_texts(void *user_data, const ptc_call *call)
{
    uint64_t id = ptc_call_id(call);
    (void)user_data;
    switch (atoi(value_of_argument(call))) {
    case 0: OK(ptc_call_reply_text(id, NULL, 0)); break;
    case 1: OK(ptc_call_reply_text(id, "a\0b", 3)); break;
    case 2: OK(ptc_call_fail(id, "bad \xff end", 9)); break;
    case 3: OK(ptc_call_fail(id, NULL, 0)); break;
    case 4: OK(ptc_call_reply(id, " \n[1 ,2]\n ", 10)); break;
    case 5: OK(ptc_call_reply_text(id, "line\nbreak\r\"\\", 13)); break;
    default: CHECK(0);
    }
}

static void odd_texts_arrive_as_they_are(void)
{
    ptc_engine *engine = dispatching(odd_texts, NULL, 0);
    check_prints(engine, IMPORT "for v in range(6): print(ascii(a(v=v)))",
                 "''\n'a\\x00b'\n{'error': 'bad \\ufffd end'}\n{'error': ''}\n[1, 2]\n'line\\nbreak\\r\"\\\\'\n");
    ptc_engine_free(engine);
}

static void dispatch_silently(void *user_data, const ptc_call *call)
{
    (void)user_data;
    (void)call;
}

static void dispatch_without_an_answer_fails_the_call_at_once(void)
{
    int threads;
    for (threads = 0; threads <= 2; threads += 2) {
        ptc_engine *engine = dispatching(dispatch_silently, NULL, threads);
        check_prints(engine, IMPORT "print(a())", "{'error': 'dispatch returned without an answer'}\n");
        ptc_engine_free(engine);
    }
}

static void answer_twice(void *user_data, const ptc_call *call)
{
    uint64_t id = ptc_call_id(call);
    (void)user_data;
    switch (*ptc_call_tool(call, NULL)) {
    case 'a': reply(id, "\"first\""); break;
    case 'b': reply_text(id, "first"); break;
    default: fail(id, "first");
    }
    FAILS(ptc_call_reply(id, "2", 1), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_reply(id, "{", 1), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_reply_text(id, "second", 6), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_fail(id, "second", 6), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_defer(id), PTC_CODE_STATE, "is not open");
    CHECK_INT(ptc_call_is_wanted(id), 0);
}

static void the_first_answer_counts(void)
{
    ptc_engine *engine = dispatching(answer_twice, NULL, 0);
    check_prints(engine, IMPORT "print(a(), b(), c())", "first first {'error': 'first'}\n");
    ptc_engine_free(engine);
}

/* ---- answered later ---- */

struct later {
    struct counter deferred;
    uint64_t ids[8];
};

static void defer(void *user_data, const ptc_call *call)
{
    struct later *later = user_data;
    uint64_t id = ptc_call_id(call);
    OK(ptc_call_defer(id));
    FAILS(ptc_call_defer(id), PTC_CODE_STATE, "deferred already");
    CHECK_INT(ptc_call_is_wanted(id), 1);
    pthread_mutex_lock(&later->deferred.lock);
    later->ids[later->deferred.value++] = id;
    pthread_cond_broadcast(&later->deferred.changed);
    pthread_mutex_unlock(&later->deferred.lock);
}

/* Answers three deferred calls, the last one first. */
static void *answer_later(void *argument)
{
    struct later *later = argument;
    int i;
    wait_for(&later->deferred, 3);
    for (i = 2; i >= 0; i--) {
        char text[32];
        CHECK_INT(ptc_call_is_wanted(later->ids[i]), 1);
        snprintf(text, sizeof text, "\"number %d\"", i);
        reply(later->ids[i], text);
        CHECK_INT(ptc_call_is_wanted(later->ids[i]), 0);
        FAILS(ptc_call_defer(later->ids[i]), PTC_CODE_STATE, "is not open");
    }
    return NULL;
}

/* Deferred calls overlap, on one lent thread too: without that the third would never come. */
static void deferred_calls_are_answered_from_another_thread(void)
{
    int threads;
    for (threads = 0; threads <= 2; threads++) {
        struct later later = { COUNTER, { 0 } };
        ptc_engine *engine = dispatching(defer, &later, threads);
        pthread_t helper;
        CHECK_INT(pthread_create(&helper, NULL, answer_later, &later), 0);
        check_prints(engine, IMPORT "print(sorted(parallel([(a, {}), (b, {}), (c, {})])))",
                     "['number 0', 'number 1', 'number 2']\n");
        pthread_join(helper, NULL);
        ptc_engine_free(engine);
    }
}

struct early {
    struct counter asked, answered;
    uint64_t id;
};

static void defer_and_wait(void *user_data, const ptc_call *call)
{
    struct early *early = user_data;
    early->id = ptc_call_id(call);
    OK(ptc_call_defer(early->id));
    count(&early->asked);
    /* The answer comes while dispatch has not returned yet. */
    wait_for(&early->answered, 1);
    CHECK_INT(ptc_call_is_wanted(early->id), 0);
}

static void *answer_early(void *argument)
{
    struct early *early = argument;
    wait_for(&early->asked, 1);
    reply_text(early->id, "early");
    count(&early->answered);
    return NULL;
}

static void a_deferred_call_may_be_answered_before_dispatch_returns(void)
{
    struct early early = { COUNTER, COUNTER, 0 };
    ptc_engine *engine = dispatching(defer_and_wait, &early, 0);
    pthread_t helper;
    CHECK_INT(pthread_create(&helper, NULL, answer_early, &early), 0);
    check_prints(engine, IMPORT "print(a())", "early\n");
    pthread_join(helper, NULL);
    ptc_engine_free(engine);
}

static void defer_then_answer(void *user_data, const ptc_call *call)
{
    uint64_t id = ptc_call_id(call);
    (void)user_data;
    OK(ptc_call_defer(id));
    reply(id, "\"both\"");
}

static void a_deferred_call_may_be_answered_inside_dispatch(void)
{
    ptc_engine *engine = dispatching(defer_then_answer, NULL, 1);
    check_prints(engine, IMPORT "print(a())", "both\n");
    ptc_engine_free(engine);
}

/* Another thread may answer without any word from dispatch, if it is quick enough. */
static void *answer_unasked(void *argument)
{
    struct early *early = argument;
    wait_for(&early->asked, 1);
    fail(early->id, "unasked");
    count(&early->answered);
    return NULL;
}

static void let_another_answer(void *user_data, const ptc_call *call)
{
    struct early *early = user_data;
    early->id = ptc_call_id(call);
    count(&early->asked);
    wait_for(&early->answered, 1);
}

static void any_thread_may_answer_while_dispatch_runs(void)
{
    struct early early = { COUNTER, COUNTER, 0 };
    ptc_engine *engine = dispatching(let_another_answer, &early, 0);
    pthread_t helper;
    CHECK_INT(pthread_create(&helper, NULL, answer_unasked, &early), 0);
    check_prints(engine, IMPORT "print(a())", "{'error': 'unasked'}\n");
    pthread_join(helper, NULL);
    ptc_engine_free(engine);
}

static void calls_of_an_ended_run_are_stale(void)
{
    struct later later = { COUNTER, { 0 } };
    ptc_engine *engine = dispatching(defer, &later, 1);
    ptc_run *run = start(engine, IMPORT "a()");
    ptc_result *result;
    wait_for(&later.deferred, 1);
    CHECK_INT(ptc_call_is_wanted(later.ids[0]), 1);
    ptc_run_cancel(run, NULL, 0);
    result = end_of(run);
    CHECK_HAS(ptc_result_json(result, NULL), "\"state\":\"unanswered\"");
    check_result(result, PTC_STATUS_INTERRUPTED, "1 made, 0 answered; a was unanswered");
    CHECK_INT(ptc_call_is_wanted(later.ids[0]), 0);
    FAILS(ptc_call_reply(later.ids[0], "1", 1), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_reply_text(later.ids[0], "1", 1), PTC_CODE_STATE, "is not open");
    FAILS(ptc_call_fail(later.ids[0], "1", 1), PTC_CODE_STATE, "is not open");
    ptc_run_free(run);
    ptc_engine_free(engine);
}

/* Nobody reads the answer to a call whose process is gone, although the run goes on. */
static void a_call_whose_caller_has_died_is_not_wanted(void)
{
    struct later later = { COUNTER, { 0 } };
    ptc_host host = make_host(defer, NULL, &later, 2);
    ptc_engine *engine = make_engine(CONFIG, &host);
    struct fifo fifo = make_fifo("go");
    char code[1000];
    ptc_run *run;
    FILE *go;
    snprintf(code, sizeof code,
             IMPORT
             "import os, signal\n"
             "child = os.fork()\n"
             "if child == 0:\n"
             "    a()\n"
             "open('%s').read()\n"
             "os.kill(child, signal.SIGKILL)\n"
             "os.waitpid(child, 0)\n"
             "b()\n",
             fifo.path);
    run = start(engine, code);
    wait_for(&later.deferred, 1);
    go = fopen(fifo.path, "w");
    CHECK(go != NULL);
    fclose(go);
    /* By the time that the second call comes, over another connection, the hang-up of the first may yet be on its way. */
    wait_for(&later.deferred, 2);
    while (ptc_call_is_wanted(later.ids[0])) sched_yield();
    FAILS(ptc_call_reply(later.ids[0], "1", 1), PTC_CODE_STATE, "is not open");
    reply(later.ids[1], "null");
    check_end(run, PTC_STATUS_SUCCESS, NULL);
    remove(fifo.path);
    ptc_engine_free(engine);
}

const struct test call_tests[] = {
    TEST(without_threads_callbacks_come_inside_a_wait_only),
    TEST(engine_threads_serve_that_many_calls_at_once),
    TEST(engine_threads_serve_several_runs_at_once),
    TEST(a_call_tells_tool_arguments_and_context),
    TEST(ids_are_never_used_again),
    TEST(answers_inside_dispatch),
    TEST(failed_calls_raise_where_that_is_configured),
    TEST(wrong_answers_are_refused_and_fail_the_call),
    TEST(odd_texts_arrive_as_they_are),
    TEST(dispatch_without_an_answer_fails_the_call_at_once),
    TEST(the_first_answer_counts),
    TEST(deferred_calls_are_answered_from_another_thread),
    TEST(a_deferred_call_may_be_answered_before_dispatch_returns),
    TEST(a_deferred_call_may_be_answered_inside_dispatch),
    TEST(any_thread_may_answer_while_dispatch_runs),
    TEST(calls_of_an_ended_run_are_stale),
    TEST(a_call_whose_caller_has_died_is_not_wanted),
    END_OF_TESTS
};
