/*
 * A complete small agent host in C: two tools, one answered inside the callback, one by a worker thread later.
 *
 *     make && ./agent              runs the script below
 *     ./agent script.py [SECONDS]  runs a script of yours, at most that long; Ctrl-C cancels it
 *     make test                    success, a tool that fails, timeout, cancellation
 *
 * Where an agent would ask its model for a script, this one has it in a string. Everything else is what a real host does.
 */
#include "ptc.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char CONFIG[] =
    "{\"tools\": ["
    "  {\"name\": \"word_count\", \"description\": \"Counts the words of a text.\","
    "   \"input_schema\": {\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}, \"required\": [\"text\"]},"
    "   \"output_schema\": {\"type\": \"integer\"}},"
    "  {\"name\": \"fetch_page\", \"description\": \"The text of a page.\","
    "   \"input_schema\": {\"type\": \"object\", \"properties\": {\"url\": {\"type\": \"string\"}}, \"required\": [\"url\"]},"
    "   \"output_schema\": {\"type\": \"string\"}}"
    "]}";

static const char SCRIPT[] =
    "from hermes_tools import fetch_page, word_count, parallel\n"
    "urls = ['https://example.org/one', 'https://example.org/two', 'https://example.org/three']\n"
    "pages = parallel(fetch_page, urls)\n"
    "for url, page in zip(urls, pages):\n"
    "    print(url, word_count(page), 'words')\n";

/* Ends the program with the message of an error that should not have been. */
static void expect_ok(ptc_error *error) {
    if (error) {
        fprintf(stderr, "agent: %s\n", ptc_error_message(error, NULL));
        exit(2);
    }
}

/* The string behind "key": in a flat JSON object, into `value`. A real host has a JSON library for this. */
static int get_string(const char *json, const char *key, char *value, size_t size) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = strstr(json, quoted);
    if (!at || !(at = strchr(at + strlen(quoted), '"'))) return 0;
    size_t used = 0;
    for (at++; *at && *at != '"' && used + 1 < size; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            value[used++] = *at == 'n' || *at == 't' ? ' ' : *at;
        } else {
            value[used++] = *at;
        }
    }
    value[used] = 0;
    return 1;
}

/* ---- a tool that is answered where it is asked ---- */

static void word_count(const ptc_call *call) {
    char text[4096], answer[32];
    if (!get_string(ptc_call_args(call, NULL), "text", text, sizeof text)) {
        static const char message[] = "word_count needs a text";
        ptc_error_free(ptc_call_fail(ptc_call_id(call), message, strlen(message)));
        return;
    }
    int words = 0;
    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n")) words++;
    snprintf(answer, sizeof answer, "%d", words);
    /* An error here means that the run has ended meanwhile, which is nobody's fault. */
    ptc_error_free(ptc_call_reply(ptc_call_id(call), answer, strlen(answer)));
}

/* ---- a tool that is answered by a worker thread ---- */

typedef struct Job {
    uint64_t call; /* the id is all that an answer needs; the ptc_call itself is gone when the callback has returned */
    char url[256];
    struct Job *next;
} Job;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Job *first;
    int stopping;
    pthread_t thread;
} Worker;

static void fetch(const Job *job) {
    char page[512];
    if (!ptc_call_is_wanted(job->call)) return; /* cancelled while it waited in the queue */
    usleep(20 * 1000);                          /* the network */
    if (strstr(job->url, "missing")) {
        int length = snprintf(page, sizeof page, "404: there is no page %s", job->url);
        ptc_error_free(ptc_call_fail(job->call, page, (size_t)length));
    } else {
        int length = snprintf(page, sizeof page, "The page of %s says hello to everybody.", job->url);
        ptc_error_free(ptc_call_reply_text(job->call, page, (size_t)length));
    }
}

static void *work(void *argument) {
    Worker *worker = argument;
    pthread_mutex_lock(&worker->lock);
    while (!worker->stopping) {
        Job *job = worker->first;
        if (!job) {
            pthread_cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        worker->first = job->next;
        pthread_mutex_unlock(&worker->lock);
        fetch(job);
        free(job);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static void fetch_page(Worker *worker, const ptc_call *call) {
    Job *job = calloc(1, sizeof *job);
    if (!job) return; /* returning without an answer fails the call, by name */
    job->call = ptc_call_id(call);
    get_string(ptc_call_args(call, NULL), "url", job->url, sizeof job->url);
    ptc_error_free(ptc_call_defer(job->call)); /* "I answer later" */
    pthread_mutex_lock(&worker->lock);
    job->next = worker->first;
    worker->first = job;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

/* ---- the host ---- */

static void dispatch(void *user_data, const ptc_call *call) {
    const char *tool = ptc_call_tool(call, NULL);
    if (!strcmp(tool, "word_count")) word_count(call);
    else if (!strcmp(tool, "fetch_page")) fetch_page(user_data, call);
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    *length = 0;
    if (!file) {
        perror(path);
        exit(2);
    }
    for (size_t size = 65536;; size *= 2) {
        text = realloc(text, size);
        if (!text) exit(2);
        *length += fread(text + *length, 1, size - *length, file);
        if (*length < size) break;
    }
    fclose(file);
    return text;
}

int main(int argc, char **argv) {
    size_t length = strlen(SCRIPT);
    char *file = argc > 1 ? read_file(argv[1], &length) : NULL;
    char options[64] = "";
    if (argc > 2) snprintf(options, sizeof options, "{\"timeout\": %g}", atof(argv[2]));

    Worker worker = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0};
    pthread_create(&worker.thread, NULL, work, &worker);

    ptc_host host = {0};
    host.struct_size = sizeof host;
    host.user_data = &worker;
    host.dispatch = dispatch; /* threads = 0: called on this thread, while it waits */

    ptc_engine *engine;
    expect_ok(ptc_engine_new(CONFIG, strlen(CONFIG), &host, &engine));

    struct sigaction action = {0};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, NULL);

    ptc_run *run;
    ptc_result *result = NULL;
    expect_ok(ptc_run_start(engine, file ? file : SCRIPT, length, options, strlen(options), NULL, &run));
    while (!result) {
        expect_ok(ptc_run_wait(run, 100, &result)); /* serves calls meanwhile; NULL: still running */
        if (interrupted) ptc_run_cancel(run, NULL, 0);
    }

    size_t output_length;
    const char *output = ptc_result_output(result, &output_length);
    fwrite(output, 1, output_length, stdout);
    if (output_length && output[output_length - 1] != '\n') putchar('\n');
    int status = ptc_result_status(result);

    ptc_result_free(result);
    ptc_run_free(run);
    ptc_engine_free(engine); /* after this no callback comes any more, so the worker can go */
    pthread_mutex_lock(&worker.lock);
    worker.stopping = 1;
    pthread_cond_signal(&worker.changed);
    pthread_mutex_unlock(&worker.lock);
    pthread_join(worker.thread, NULL);
    while (worker.first) {
        Job *job = worker.first;
        worker.first = job->next;
        free(job);
    }
    free(file);
    return status;
}
