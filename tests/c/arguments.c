/* What every function does with arguments at their edges: NULL, lengths, sizes, bad text. */
#include "check.h"

#include <stddef.h>
#include <stdint.h>

/* A string literal and its length. */
#define TEXT(literal) literal, sizeof(literal) - 1

static const char BAD_UTF8[] = { 'a', '\xff', 'b' };

/* Counts what `drop` is called with. */
static void on_drop(void *user_data)
{
    ++*(int *)user_data;
}

static void versions(void)
{
    int major = -1, minor = -1, patch = -1;
    CHECK_INT(sscanf(ptc_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    CHECK(ptc_version() == ptc_version());
    CHECK_INT(ptc_abi_version(), PTC_ABI_VERSION);
    CHECK_INT(ptc_is_supported(), 1);
}

static void null_handles_are_answered_or_ignored(void)
{
    size_t len = 77;
    char *text = NULL;
    ptc_run *run = GARBAGE;
    ptc_result *result = GARBAGE;
    ptc_event *event = GARBAGE;

    CHECK_INT(ptc_error_code(NULL), 0);
    CHECK(ptc_error_message(NULL, &len) == NULL && len == 0);
    CHECK(ptc_error_message(NULL, NULL) == NULL);
    ptc_error_free(NULL);

    FAILS(ptc_engine_definition(NULL, "openai", &text, &len), PTC_CODE_INVALID_ARGUMENT, "engine is NULL");
    ptc_string_free(NULL);
    FAILS(ptc_engine_close(NULL, -1), PTC_CODE_INVALID_ARGUMENT, "engine is NULL");
    ptc_engine_free(NULL);
    FAILS(ptc_run_start(NULL, "1", 1, NULL, 0, NULL, &run), PTC_CODE_INVALID_ARGUMENT, "engine is NULL");
    CHECK(run == NULL);
    FAILS(ptc_execute(NULL, "1", 1, NULL, 0, NULL, &result), PTC_CODE_INVALID_ARGUMENT, "engine is NULL");
    CHECK(result == NULL);

    CHECK(ptc_run_retain(NULL) == NULL);
    ptc_run_free(NULL);
    result = GARBAGE;
    FAILS(ptc_run_wait(NULL, 0, &result), PTC_CODE_INVALID_ARGUMENT, "run is NULL");
    CHECK(result == NULL);
    FAILS(ptc_run_next_event(NULL, 0, &event), PTC_CODE_INVALID_ARGUMENT, "run is NULL");
    CHECK(event == NULL);
    CHECK_INT(ptc_run_fd(NULL), -1);
    ptc_run_cancel(NULL, NULL, 0);
    ptc_run_cancel(NULL, "why", 3);

    CHECK_INT(ptc_call_id(NULL), 0);
    len = 77;
    CHECK(ptc_call_tool(NULL, &len) == NULL && len == 0);
    len = 77;
    CHECK(ptc_call_args(NULL, &len) == NULL && len == 0);
    CHECK(ptc_call_tool(NULL, NULL) == NULL && ptc_call_args(NULL, NULL) == NULL);
    CHECK(ptc_call_context(NULL) == NULL);

    CHECK_INT(ptc_event_kind(NULL), 0);
    len = 77;
    CHECK(ptc_event_data(NULL, &len) == NULL && len == 0);
    CHECK(ptc_event_data(NULL, NULL) == NULL && ptc_event_call(NULL) == NULL);
    ptc_event_free(NULL);

    CHECK_INT(ptc_result_status(NULL), -1);
    len = 77;
    CHECK(ptc_result_json(NULL, &len) == NULL && len == 0);
    len = 77;
    CHECK(ptc_result_output(NULL, &len) == NULL && len == 0);
    CHECK(ptc_result_json(NULL, NULL) == NULL && ptc_result_output(NULL, NULL) == NULL);
    ptc_result_free(NULL);
}

/* 0 is never an id, and nobody gets as far as the largest. */
static void unknown_calls_are_a_wrong_state(void)
{
    const uint64_t ids[] = { 0, 1, UINT64_MAX };
    size_t i;
    for (i = 0; i < sizeof ids / sizeof *ids; i++) {
        FAILS(ptc_call_defer(ids[i]), PTC_CODE_STATE, "is not open");
        FAILS(ptc_call_reply(ids[i], "1", 1), PTC_CODE_STATE, "is not open");
        FAILS(ptc_call_reply_text(ids[i], "1", 1), PTC_CODE_STATE, "is not open");
        FAILS(ptc_call_fail(ids[i], "no", 2), PTC_CODE_STATE, "is not open");
        /* Nobody is there who could be failed, whatever is wrong with the text. */
        FAILS(ptc_call_reply(ids[i], "{", 1), PTC_CODE_STATE, "is not open");
        FAILS(ptc_call_reply(ids[i], NULL, 1), PTC_CODE_STATE, "is not open");
        FAILS(ptc_call_reply_text(ids[i], BAD_UTF8, 3), PTC_CODE_STATE, "is not open");
        FAILS(ptc_call_fail(ids[i], NULL, 1), PTC_CODE_STATE, "is not open");
        CHECK_INT(ptc_call_is_wanted(ids[i]), 0);
    }
}

static void an_error_has_a_code_and_a_message(void)
{
    ptc_engine *engine = GARBAGE;
    size_t len = 0;
    const char config[] = "{\"code_execution\": {\"timeout\": \"5m\"}}";
    ptc_error *error = ptc_engine_new(config, strlen(config), NULL, &engine);
    CHECK(engine == NULL);
    CHECK_INT(ptc_error_code(error), PTC_CODE_CONFIG);
    CHECK_STR(ptc_error_message(error, &len),
              "code_execution.timeout: expected a number of seconds > 0, got \"5m\"");
    CHECK_INT(len, strlen(ptc_error_message(error, NULL)));
    ptc_error_free(error);
}

static void the_size_of_the_host_struct_is_checked(void)
{
    struct {
        ptc_host host;
        char newer[64];
    } larger;
    ptc_engine *engine = GARBAGE;
    const size_t too_small[] = { 0, 1, sizeof(size_t), offsetof(ptc_host, drop), offsetof(ptc_host, threads),
                                 offsetof(ptc_host, threads) + sizeof(int32_t) - 1 };
    size_t i;
    int dropped = 0;

    memset(&larger, 0, sizeof larger);
    larger.host = make_host(NULL, NULL, &dropped, 0);
    larger.host.drop = on_drop;
    for (i = 0; i < sizeof too_small / sizeof *too_small; i++) {
        larger.host.struct_size = too_small[i];
        FAILS(ptc_engine_new("{}", 2, &larger.host, &engine), PTC_CODE_INVALID_ARGUMENT, "struct_size");
        CHECK(engine == NULL);
    }
    /* Where the size tells that `drop` is there, it is called also for a struct that is too small. */
    CHECK_INT(dropped, 2);

    dropped = 0;
    larger.host.struct_size = SIZE_MAX;
    FAILS(ptc_engine_new("{}", 2, &larger.host, &engine), PTC_CODE_INVALID_ARGUMENT, "struct_size");
    larger.host.struct_size = 1 << 20;
    FAILS(ptc_engine_new("{}", 2, &larger.host, &engine), PTC_CODE_INVALID_ARGUMENT, "struct_size");
    /* Sizes like these come from memory that was not zeroed, and so may the pointers. */
    CHECK_INT(dropped, 0);

    larger.host.struct_size = sizeof larger;
    larger.newer[63] = 1;
    FAILS(ptc_engine_new("{}", 2, &larger.host, &engine), PTC_CODE_INVALID_ARGUMENT, "ptc_abi_version");
    CHECK(engine == NULL);
    CHECK_INT(dropped, 1);

    larger.newer[63] = 0;
    OK(ptc_engine_new("{}", 2, &larger.host, &engine));
    ptc_engine_free(engine);
    CHECK_INT(dropped, 2);

    larger.host.struct_size = offsetof(ptc_host, threads) + sizeof(int32_t);
    OK(ptc_engine_new("{}", 2, &larger.host, &engine));
    ptc_engine_free(engine);
    CHECK_INT(dropped, 3);
}

static void the_number_of_threads_is_checked(void)
{
    const int32_t wrong[] = { -1, INT32_MIN, 1025, INT32_MAX };
    ptc_engine *engine = NULL;
    size_t i;
    int dropped = 0;
    ptc_host host = make_host(NULL, NULL, &dropped, 0);
    host.drop = on_drop;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        host.threads = wrong[i];
        FAILS(ptc_engine_new("{}", 2, &host, &engine), PTC_CODE_INVALID_ARGUMENT, "host.threads");
        CHECK_INT(dropped, i + 1);
    }
    host.threads = 1024;
    OK(ptc_engine_new("{}", 2, &host, &engine));
    ptc_engine_free(engine);
}

static void drop_is_called_once_whatever_is_wrong(void)
{
    ptc_engine *engine = GARBAGE;
    int dropped = 0;
    ptc_host host = make_host(NULL, NULL, &dropped, 0);
    host.drop = on_drop;
    FAILS(ptc_engine_new("{", 1, &host, &engine), PTC_CODE_CONFIG, "");
    CHECK_INT(dropped, 1);
    FAILS(ptc_engine_new("{}", 2, &host, NULL), PTC_CODE_INVALID_ARGUMENT, "out is NULL");
    CHECK_INT(dropped, 2);
    FAILS(ptc_engine_new(BAD_UTF8, 3, &host, &engine), PTC_CODE_INVALID_ARGUMENT, "UTF-8");
    CHECK_INT(dropped, 3);
    FAILS(ptc_engine_new(NULL, 3, &host, &engine), PTC_CODE_INVALID_ARGUMENT, "config is NULL");
    CHECK_INT(dropped, 4);
    CHECK(engine == NULL);

    OK(ptc_engine_new(NULL, 0, &host, &engine));
    CHECK_INT(dropped, 4);
    OK(ptc_engine_close(engine, -1));
    CHECK_INT(dropped, 5);
    OK(ptc_engine_close(engine, 0));
    ptc_engine_free(engine);
    CHECK_INT(dropped, 5);
}

static void configurations(void)
{
    static const struct {
        const char *text;
        size_t len;
        int code;
        const char *part;
    } bad[] = {
        { "[]", 2, PTC_CODE_CONFIG, "" },
        { "{}x", 3, PTC_CODE_CONFIG, "" },
        { "nonsense", 8, PTC_CODE_CONFIG, "" },
        /* The NUL is part of what was given. */
        { "{}\0", 3, PTC_CODE_CONFIG, "" },
        { TEXT("{\"code_execution\": {\"max_tool_calls\": -1}}"), PTC_CODE_CONFIG, "code_execution.max_tool_calls" },
        { TEXT("{\"code_execution\": {\"timeuot\": 1}}"), PTC_CODE_CONFIG, "code_execution.timeuot" },
        { TEXT("{\"tools\": [{\"name\": \"execute_code\"}]}"), PTC_CODE_CONFIG, "tools[0]" },
        { "{}", (size_t)-1, PTC_CODE_INVALID_ARGUMENT, "larger than any memory" },
        { NULL, 1, PTC_CODE_INVALID_ARGUMENT, "config is NULL" },
    };
    static const struct {
        const char *text;
        size_t len;
    } good[] = {
        { NULL, 0 }, { "", 0 }, { "{}", 2 }, { "{} not read", 2 }, { "{\"other\": 1}", 12 },
    };
    ptc_engine *engine;
    size_t i;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        engine = GARBAGE;
        FAILS(ptc_engine_new(bad[i].text, bad[i].len, NULL, &engine), bad[i].code, bad[i].part);
        CHECK(engine == NULL);
    }
    for (i = 0; i < sizeof good / sizeof *good; i++) {
        OK(ptc_engine_new(good[i].text, good[i].len, NULL, &engine));
        CHECK(engine != NULL);
        ptc_engine_free(engine);
    }
}

static void definitions(void)
{
    static const char *const formats[] = { "anthropic", "openai", "mcp", "text" };
    ptc_engine *engine = pulling();
    char *text = NULL;
    size_t len, i;
    for (i = 0; i < sizeof formats / sizeof *formats; i++) {
        len = 0;
        OK(ptc_engine_definition(engine, formats[i], &text, &len));
        CHECK_HAS(text, "hermes_tools");
        CHECK_INT(len, strlen(text));
        ptc_string_free(text);
        OK(ptc_engine_definition(engine, formats[i], &text, NULL));
        ptc_string_free(text);
    }
    text = GARBAGE;
    FAILS(ptc_engine_definition(engine, "yaml", &text, &len), PTC_CODE_INVALID_ARGUMENT, "yaml");
    CHECK(text == NULL);
    FAILS(ptc_engine_definition(engine, "", &text, &len), PTC_CODE_INVALID_ARGUMENT, "anthropic");
    FAILS(ptc_engine_definition(engine, "\xff", &text, &len), PTC_CODE_INVALID_ARGUMENT, "anthropic");
    FAILS(ptc_engine_definition(engine, NULL, &text, &len), PTC_CODE_INVALID_ARGUMENT, "format is NULL");
    FAILS(ptc_engine_definition(engine, "text", NULL, &len), PTC_CODE_INVALID_ARGUMENT, "out is NULL");
    ptc_engine_free(engine);
}

static void scripts_and_options(void)
{
    static const struct {
        const char *code;
        size_t code_len;
        const char *options;
        size_t options_len;
        int error;
        const char *part;
    } bad[] = {
        { NULL, 0, NULL, 0, PTC_CODE_INVALID_ARGUMENT, "empty" },
        { "", 0, NULL, 0, PTC_CODE_INVALID_ARGUMENT, "empty" },
        { " \n", 2, NULL, 0, PTC_CODE_INVALID_ARGUMENT, "empty" },
        { NULL, 3, NULL, 0, PTC_CODE_INVALID_ARGUMENT, "code is NULL" },
        { "1", (size_t)-1, NULL, 0, PTC_CODE_INVALID_ARGUMENT, "larger than any memory" },
        { "a\xff", 2, NULL, 0, PTC_CODE_INVALID_ARGUMENT, "UTF-8" },
        { "a\0b", 3, NULL, 0, PTC_CODE_INVALID_ARGUMENT, "NUL" },
        { "1", 1, NULL, 3, PTC_CODE_INVALID_ARGUMENT, "options is NULL" },
        { "1", 1, "a\xff", 2, PTC_CODE_INVALID_ARGUMENT, "UTF-8" },
        { "1", 1, "{", 1, PTC_CODE_CONFIG, "options" },
        { "1", 1, "[]", 2, PTC_CODE_CONFIG, "options" },
        { "1", 1, TEXT("{\"timeout\": 0}"), PTC_CODE_CONFIG, "timeout" },
        { "1", 1, TEXT("{\"nothing\": 0}"), PTC_CODE_CONFIG, "nothing" },
        { "1", 1, TEXT("{\"tools\": [\"d\"]}"), PTC_CODE_CONFIG, "tools[0]" },
    };
    ptc_engine *engine = pulling();
    size_t i;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        ptc_run *run = GARBAGE;
        ptc_result *result = GARBAGE;
        FAILS(ptc_run_start(engine, bad[i].code, bad[i].code_len, bad[i].options, bad[i].options_len, NULL, &run),
              bad[i].error, bad[i].part);
        CHECK(run == NULL);
        FAILS(ptc_execute(engine, bad[i].code, bad[i].code_len, bad[i].options, bad[i].options_len, NULL, &result),
              bad[i].error, bad[i].part);
        CHECK(result == NULL);
    }
    FAILS(ptc_run_start(engine, "1", 1, NULL, 0, NULL, NULL), PTC_CODE_INVALID_ARGUMENT, "out is NULL");
    FAILS(ptc_execute(engine, "1", 1, NULL, 0, NULL, NULL), PTC_CODE_INVALID_ARGUMENT, "out is NULL");
    ptc_engine_free(engine);
}

/* Text needs no NUL behind it, is copied, and may be overwritten as soon as the function has returned. */
static void text_is_taken_by_its_length_and_copied(void)
{
    static const char config_text[] = CONFIG, code_text[] = IMPORT "print('copied', 'ä')", options_text[] = "{}";
    char *config = malloc(sizeof config_text - 1);
    char *code = malloc(sizeof code_text - 1);
    char *options = malloc(sizeof options_text - 1);
    ptc_host *host = malloc(sizeof *host);
    ptc_engine *engine = NULL;
    ptc_run *run = NULL;
    CHECK(config != NULL && code != NULL && options != NULL && host != NULL);

    memcpy(config, config_text, sizeof config_text - 1);
    *host = make_host(NULL, NULL, NULL, 0);
    OK(ptc_engine_new(config, sizeof config_text - 1, host, &engine));
    memset(config, 'x', sizeof config_text - 1);
    memset(host, 'x', sizeof *host);
    free(host);
    free(config);

    memcpy(code, code_text, sizeof code_text - 1);
    memcpy(options, options_text, sizeof options_text - 1);
    OK(ptc_run_start(engine, code, sizeof code_text - 1, options, sizeof options_text - 1, NULL, &run));
    memset(code, 'x', sizeof code_text - 1);
    memset(options, 'x', sizeof options_text - 1);
    free(code);
    free(options);
    check_end(run, PTC_STATUS_SUCCESS, "copied ä\n");
    ptc_engine_free(engine);
}

static void timeouts_below_minus_one_are_refused(void)
{
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, "print(1)");
    ptc_result *result = GARBAGE;
    ptc_event *event = GARBAGE;
    FAILS(ptc_run_wait(run, -2, &result), PTC_CODE_INVALID_ARGUMENT, "timeout_ms");
    CHECK(result == NULL);
    FAILS(ptc_run_wait(run, INT64_MIN, &result), PTC_CODE_INVALID_ARGUMENT, "timeout_ms");
    FAILS(ptc_run_wait(run, -1, NULL), PTC_CODE_INVALID_ARGUMENT, "out is NULL");
    FAILS(ptc_run_next_event(run, -2, &event), PTC_CODE_INVALID_ARGUMENT, "timeout_ms");
    CHECK(event == NULL);
    FAILS(ptc_run_next_event(run, -1, NULL), PTC_CODE_INVALID_ARGUMENT, "out is NULL");
    FAILS(ptc_engine_close(engine, -2), PTC_CODE_INVALID_ARGUMENT, "timeout_ms");
    /* None of this has closed or ended anything, and the longest time is one that can be waited. */
    OK(ptc_run_wait(run, INT64_MAX, &result));
    check_result(result, PTC_STATUS_SUCCESS, "1\n");
    ptc_run_free(run);
    OK(ptc_engine_close(engine, INT64_MAX));
    ptc_engine_free(engine);
}

const struct test argument_tests[] = {
    TEST(versions),
    TEST(null_handles_are_answered_or_ignored),
    TEST(unknown_calls_are_a_wrong_state),
    TEST(an_error_has_a_code_and_a_message),
    TEST(the_size_of_the_host_struct_is_checked),
    TEST(the_number_of_threads_is_checked),
    TEST(drop_is_called_once_whatever_is_wrong),
    TEST(configurations),
    TEST(definitions),
    TEST(scripts_and_options),
    TEST(text_is_taken_by_its_length_and_copied),
    TEST(timeouts_below_minus_one_are_refused),
    END_OF_TESTS
};
