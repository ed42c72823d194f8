/* The helpers of check.h. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

char check_garbage;

void check_failed(const char *file, int line, const char *what)
{
    printf("%s:%d: failed: %s\n", file, line, what);
    fflush(stdout);
    _exit(1);
}

void check_int(const char *file, int line, const char *what, long long actual, long long expected)
{
    if (actual == expected) return;
    printf("%s:%d: %s is %lld, expected %lld\n", file, line, what, actual, expected);
    check_failed(file, line, what);
}

void check_str(const char *file, int line, const char *what, const char *actual, const char *expected)
{
    if (actual != NULL && strcmp(actual, expected) == 0) return;
    printf("%s:%d: %s is\n%s\nexpected\n%s\n", file, line, what, actual ? actual : "NULL", expected);
    check_failed(file, line, what);
}

void check_has(const char *file, int line, const char *what, const char *text, const char *part, int wanted)
{
    if (text != NULL && (strstr(text, part) != NULL) == wanted) return;
    printf("%s:%d: %s is\n%s\nexpected it %s\n%s\n", file, line, what, text ? text : "NULL",
           wanted ? "to have in it" : "not to have in it", part);
    check_failed(file, line, what);
}

void check_ok(const char *file, int line, const char *what, ptc_error *error)
{
    if (error == NULL) return;
    printf("%s:%d: %s: error %d: %s\n", file, line, what, ptc_error_code(error), ptc_error_message(error, NULL));
    check_failed(file, line, what);
}

void check_fails(const char *file, int line, const char *what, ptc_error *error, int code, const char *part)
{
    size_t len = 0;
    const char *message;
    if (error == NULL) {
        printf("%s:%d: %s succeeds, expected error %d\n", file, line, what, code);
        check_failed(file, line, what);
    }
    message = ptc_error_message(error, &len);
    if (message == NULL || strlen(message) != len || len == 0) check_failed(file, line, "the error has a message");
    if (ptc_error_code(error) != code) {
        printf("%s:%d: %s\n", file, line, message);
        check_int(file, line, what, ptc_error_code(error), code);
    }
    check_has(file, line, what, message, part, 1);
    ptc_error_free(error);
}

ptc_host make_host(ptc_dispatch_fn dispatch, ptc_event_fn on_event, void *user_data, int threads)
{
    ptc_host host;
    memset(&host, 0, sizeof host);
    host.struct_size = sizeof host;
    host.dispatch = dispatch;
    host.on_event = on_event;
    host.user_data = user_data;
    host.threads = threads;
    return host;
}

ptc_engine *make_engine(const char *config, const ptc_host *host)
{
    ptc_engine *engine = NULL;
    OK(ptc_engine_new(config, strlen(config), host, &engine));
    CHECK(engine != NULL);
    return engine;
}

ptc_engine *dispatching(ptc_dispatch_fn dispatch, void *user_data, int threads)
{
    ptc_host host = make_host(dispatch, NULL, user_data, threads);
    return make_engine(CONFIG, &host);
}

ptc_engine *pulling(void)
{
    return make_engine(CONFIG, NULL);
}

ptc_run *start_with(ptc_engine *engine, const char *code, const char *options, void *context)
{
    ptc_run *run = NULL;
    OK(ptc_run_start(engine, code, strlen(code), options, strlen(options), context, &run));
    CHECK(run != NULL);
    return run;
}

ptc_run *start(ptc_engine *engine, const char *code)
{
    return start_with(engine, code, "", NULL);
}

ptc_result *end_of(ptc_run *run)
{
    ptc_result *result = NULL;
    OK(ptc_run_wait(run, -1, &result));
    CHECK(result != NULL);
    return result;
}

ptc_result *execute(ptc_engine *engine, const char *code)
{
    ptc_result *result = NULL;
    OK(ptc_execute(engine, code, strlen(code), NULL, 0, NULL, &result));
    CHECK(result != NULL);
    return result;
}

void check_prints(ptc_engine *engine, const char *code, const char *output)
{
    ptc_result *result = execute(engine, code);
    CHECK_STR(ptc_result_output(result, NULL), output);
    CHECK_INT(ptc_result_status(result), PTC_STATUS_SUCCESS);
    ptc_result_free(result);
}

void check_result(ptc_result *result, int status, const char *part)
{
    if (part != NULL) CHECK_HAS(ptc_result_output(result, NULL), part);
    if (ptc_result_status(result) != status) printf("%s\n", ptc_result_json(result, NULL));
    CHECK_INT(ptc_result_status(result), status);
    ptc_result_free(result);
}

void check_end(ptc_run *run, int status, const char *part)
{
    check_result(end_of(run), status, part);
    ptc_run_free(run);
}

void reply(uint64_t id, const char *json)
{
    OK(ptc_call_reply(id, json, strlen(json)));
}

void reply_text(uint64_t id, const char *text)
{
    OK(ptc_call_reply_text(id, text, strlen(text)));
}

void fail(uint64_t id, const char *message)
{
    OK(ptc_call_fail(id, message, strlen(message)));
}

ptc_event *next(ptc_run *run, int kind)
{
    ptc_event *event = NULL;
    OK(ptc_run_next_event(run, -1, &event));
    CHECK(event != NULL);
    if (kind != 0) CHECK_INT(ptc_event_kind(event), kind);
    return event;
}

ptc_event *skip_to(ptc_run *run, int kind)
{
    for (;;) {
        ptc_event *event = next(run, 0);
        if (ptc_event_kind(event) == kind) return event;
        CHECK(ptc_event_kind(event) != PTC_EVENT_END);
        ptc_event_free(event);
    }
}

void pump(ptc_run *run)
{
    for (;;) {
        ptc_event *event = NULL;
        OK(ptc_run_next_event(run, -1, &event));
        if (event == NULL) return;
        if (ptc_event_call(event) != NULL) reply(ptc_call_id(ptc_event_call(event)), "null");
        ptc_event_free(event);
    }
}

int count(struct counter *counter)
{
    int value;
    pthread_mutex_lock(&counter->lock);
    value = ++counter->value;
    pthread_cond_broadcast(&counter->changed);
    pthread_mutex_unlock(&counter->lock);
    return value;
}

int value_of(struct counter *counter)
{
    int value;
    pthread_mutex_lock(&counter->lock);
    value = counter->value;
    pthread_mutex_unlock(&counter->lock);
    return value;
}

void wait_for(struct counter *counter, int value)
{
    pthread_mutex_lock(&counter->lock);
    while (counter->value < value) pthread_cond_wait(&counter->changed, &counter->lock);
    pthread_mutex_unlock(&counter->lock);
}

struct fifo make_fifo(const char *name)
{
    struct fifo fifo;
    snprintf(fifo.path, sizeof fifo.path, "%s/%s", scratch(), name);
    CHECK_INT(mkfifo(fifo.path, 0600), 0);
    return fifo;
}

int hear(const struct fifo *fifo)
{
    char byte;
    int fd = open(fifo->path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_INT(read(fd, &byte, 1), 1);
    unlink(fifo->path);
    return fd;
}

void wait_for_silence(int fd)
{
    char bytes[64];
    while (read(fd, bytes, sizeof bytes) > 0) {}
    close(fd);
}

const char *with_fifo(char *buffer, size_t size, const char *script, const struct fifo *fifo)
{
    int length = snprintf(buffer, size, "%stell = open('%s', 'w')\ntell.write('.')\ntell.flush()\n%s", IMPORT,
                          fifo->path, script);
    CHECK(length > 0 && (size_t)length < size);
    return buffer;
}

const char *scratch(void)
{
    return getenv("TMPDIR");
}

int entries_of(const char *directory)
{
    int entries = 0;
    struct dirent *entry;
    DIR *stream = opendir(directory);
    if (stream == NULL) return -1;
    while ((entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) entries++;
    }
    closedir(stream);
    return entries;
}

int open_descriptors(void)
{
    /* The stream that counts is among them, each time. */
    int entries = entries_of("/proc/self/fd");
    return entries >= 0 ? entries : entries_of("/dev/fd");
}

int threads_now(void)
{
    return entries_of("/proc/self/task");
}
