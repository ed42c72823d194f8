/* A good guest: what the process of the host looks like after the library was there, and how little of it the library
 * relies on. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void answer_null(void *user_data, const ptc_call *call)
{
    (void)user_data;
    reply(ptc_call_id(call), "null");
}

static void ignore_event(void *user_data, const ptc_event *event)
{
    (void)user_data;
    (void)event;
}

/* Some of everything: both driving styles, a deferred end, a timeout, a cancelled run, a failed start. */
static void use_everything(void)
{
    static const int threads[] = { 0, 4 };
    size_t i;
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, IMPORT "print(parallel([(a, {}), (b, {}), (c, {})]))");
    CHECK(ptc_run_fd(run) >= 0);
    pump(run);
    check_end(run, PTC_STATUS_SUCCESS, "[None, None, None]\n");
    run = start(engine, IMPORT "a()");
    ptc_event_free(skip_to(run, PTC_EVENT_CALL));
    ptc_run_cancel(run, NULL, 0);
    check_end(run, PTC_STATUS_INTERRUPTED, NULL);
    run = start_with(engine, "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nimport time\ntime.sleep(1000)",
                     "{\"timeout\": 0.5}", NULL);
    check_end(run, PTC_STATUS_TIMEOUT, NULL);
    /* Given up while it runs. */
    ptc_run_free(start(engine, "import time\ntime.sleep(1000)"));
    ptc_engine_free(engine);

    for (i = 0; i < 2; i++) {
        ptc_host host = make_host(answer_null, ignore_event, NULL, threads[i]);
        engine = make_engine(CONFIG, &host);
        check_prints(engine, IMPORT "print(parallel([(a, {}), (b, {}), (c, {})]))", "[None, None, None]\n");
        check_result(execute(engine, "import sys\nsys.exit('bad')"), PTC_STATUS_ERROR, "bad");
        ptc_engine_free(engine);
    }
    ptc_error_free(ptc_engine_new("{", 1, NULL, &engine));
}

static void nothing_is_left_behind(void)
{
    const int descriptors = open_descriptors(), threads = threads_now();
    CHECK(descriptors > 0);
    use_everything();
    CHECK_INT(open_descriptors(), descriptors);
    CHECK_INT(threads_now(), threads);
    CHECK_INT(entries_of(scratch()), 0);
    /* No child, dead or alive. */
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_INT(errno, ECHILD);
    /* The second time is no different. */
    use_everything();
    CHECK_INT(open_descriptors(), descriptors);
    CHECK_INT(threads_now(), threads);
    CHECK_INT(entries_of(scratch()), 0);
}

static void a_closed_engine_holds_no_threads(void)
{
    const int threads = threads_now();
    ptc_engine *engine = dispatching(answer_null, NULL, 4);
    check_prints(engine, IMPORT "a()", "");
    OK(ptc_engine_close(engine, -1));
    CHECK_INT(threads_now(), threads);
    ptc_engine_free(engine);
}

static void on_signal(int signal)
{
    (void)signal;
}

/* Each signal in turn: default, ignored, handled. */
static void set_dispositions(void)
{
    int number;
    for (number = 1; number < 32; number++) {
        struct sigaction action;
        if (number == SIGKILL || number == SIGSTOP || number == SIGALRM || number == SIGCHLD) continue;
        if (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGABRT) continue;
        memset(&action, 0, sizeof action);
        sigemptyset(&action.sa_mask);
        action.sa_handler = number % 3 == 0 ? SIG_DFL : number % 3 == 1 ? SIG_IGN : on_signal;
        action.sa_flags = number % 2 == 0 ? SA_RESTART : 0;
        CHECK_INT(sigaction(number, &action, NULL), 0);
    }
}

struct process_state {
    struct sigaction actions[32];
    sigset_t mask;
    mode_t umask;
    char cwd[1000];
    char locale[1000];
    char environment[10000];
};

static void look(struct process_state *state)
{
    int number;
    char **variable;
    size_t used = 0;
    memset(state, 0, sizeof *state);
    for (number = 1; number < 32; number++) sigaction(number, NULL, &state->actions[number]);
    sigemptyset(&state->mask);
    CHECK_INT(pthread_sigmask(SIG_BLOCK, NULL, &state->mask), 0);
    state->umask = umask(0);
    umask(state->umask);
    CHECK(getcwd(state->cwd, sizeof state->cwd) != NULL);
    snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
    for (variable = environ; *variable != NULL && used < sizeof state->environment; variable++) {
        used += (size_t)snprintf(state->environment + used, sizeof state->environment - used, "%s\n", *variable);
    }
}

static void the_state_of_the_process_is_untouched(void)
{
    struct process_state *before = malloc(sizeof *before), *after = malloc(sizeof *after);
    sigset_t mask;
    int number;
    CHECK(before != NULL && after != NULL);
    set_dispositions();
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGTERM);
    CHECK_INT(pthread_sigmask(SIG_BLOCK, &mask, NULL), 0);
    umask(027);
    look(before);
    use_everything();
    look(after);
    for (number = 1; number < 32; number++) {
        CHECK(before->actions[number].sa_handler == after->actions[number].sa_handler);
        CHECK_INT(before->actions[number].sa_flags, after->actions[number].sa_flags);
        CHECK_INT(sigismember(&before->mask, number), sigismember(&after->mask, number));
    }
    CHECK_INT(before->umask, after->umask);
    CHECK_STR(after->cwd, before->cwd);
    CHECK_STR(after->locale, before->locale);
    CHECK_STR(after->environment, before->environment);
    free(before);
    free(after);
}

static void the_script_sees_nothing_of_the_hosts_signals(void)
{
    sigset_t mask;
    ptc_engine *engine = pulling();
    set_dispositions();
    sigfillset(&mask);
    sigdelset(&mask, SIGALRM);
    CHECK_INT(pthread_sigmask(SIG_BLOCK, &mask, NULL), 0);
    check_prints(engine,
                 "import signal\n"
                 "print(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
                 "own = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM)\n"
                 "for s in range(1, 32):\n"
                 "    if s not in own and signal.getsignal(s) != signal.SIG_DFL: print(s, signal.getsignal(s))\n",
                 "set()\n");
    ptc_engine_free(engine);
}

/* Threads of the engine take no signal that is meant for the host: with the host's own thread blocking it, a signal
 * stays pending. */
static void signals_stay_with_the_host(void)
{
    sigset_t mask, pending;
    ptc_engine *engine = dispatching(answer_null, NULL, 2);
    struct fifo fifo = make_fifo("started");
    char code[1000];
    struct sigaction action;
    ptc_run *run;
    int fd, taken;
    check_prints(engine, IMPORT "a()", "");
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    CHECK_INT(sigaction(SIGUSR1, &action, NULL), 0);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    CHECK_INT(pthread_sigmask(SIG_BLOCK, &mask, NULL), 0);
    run = start(engine, with_fifo(code, sizeof code, "import time\ntime.sleep(1000)", &fifo));
    fd = hear(&fifo);
    CHECK_INT(kill(getpid(), SIGUSR1), 0);
    sigemptyset(&pending);
    CHECK_INT(sigpending(&pending), 0);
    CHECK_INT(sigismember(&pending, SIGUSR1), 1);
    ptc_run_cancel(run, NULL, 0);
    check_end(run, PTC_STATUS_INTERRUPTED, NULL);
    wait_for_silence(fd);
    ptc_engine_free(engine);
    CHECK_INT(sigwait(&mask, &taken), 0);
    CHECK_INT(taken, SIGUSR1);
}

/* ---- hosts with habits of their own ---- */

/* Such a host takes the exit statuses away. There are other ways to learn of them. */
static void check_results_without_wait_statuses(void)
{
    ptc_engine *engine = dispatching(answer_null, NULL, 0);
    int i;
    for (i = 0; i < 3; i++) {
        check_result(execute(engine, IMPORT "print('right', a())"), PTC_STATUS_SUCCESS, "right None\n");
        check_result(execute(engine, "import sys\nprint('before')\nsys.exit(0)"), PTC_STATUS_SUCCESS, "before\n");
        check_result(execute(engine, "import sys\nsys.exit(7)"), PTC_STATUS_ERROR, "exit code 7");
        check_result(execute(engine, "print('before')\nraise ValueError('mine')"), PTC_STATUS_ERROR, "ValueError: mine");
    }
    ptc_engine_free(engine);
}

static void a_host_that_ignores_sigchld(void)
{
    int must_ask_the_script = PORTABLE || getenv("PTC_TEST_DENY") != NULL;
    ptc_engine *engine;
    CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    check_results_without_wait_statuses();
    engine = dispatching(answer_null, NULL, 0);
    check_result(execute(engine, "import os\nos.kill(os.getpid(), 9)"), PTC_STATUS_ERROR,
                 must_ask_the_script ? "its exit status is unknown" : "SIGKILL");
    ptc_engine_free(engine);
    CHECK(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
}

static void a_host_that_wants_no_zombies(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_NOCLDWAIT;
    CHECK_INT(sigaction(SIGCHLD, &action, NULL), 0);
    check_results_without_wait_statuses();
}

static volatile sig_atomic_t is_over;

static void *reap_everything(void *unused)
{
    (void)unused;
    while (!is_over) {
        if (waitpid(-1, NULL, 0) < 0) sched_yield();
    }
    return NULL;
}

static void a_host_that_reaps_every_child(void)
{
    pthread_t reaper;
    CHECK_INT(pthread_create(&reaper, NULL, reap_everything, NULL), 0);
    check_results_without_wait_statuses();
    is_over = 1;
    pthread_join(reaper, NULL);
}

static void on_sigchld(int signal)
{
    int before = errno;
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    errno = before;
}

static void a_host_that_reaps_in_its_handler(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_sigchld;
    CHECK_INT(sigaction(SIGCHLD, &action, NULL), 0);
    check_results_without_wait_statuses();
}

/* A child of the host's own is never waited for. */
static void children_of_the_host_are_its_own(void)
{
    int status = 0;
    pid_t own = fork();
    CHECK(own >= 0);
    if (own == 0) _exit(42);
    use_everything();
    CHECK_INT(waitpid(own, &status, 0), own);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

/* Without 0, 1 and 2, which the library's own descriptors then get as numbers. */
static void a_host_without_standard_streams(void)
{
    ptc_engine *engine;
    ptc_result *result;
    int output = dup(1), errors = dup(2), is_right;
    close(0);
    close(1);
    close(2);
    engine = dispatching(answer_null, NULL, 1);
    result = execute(engine, IMPORT "import sys\nprint('right', a())\nprint('e', file=sys.stderr)\nsys.exit(1)");
    is_right = strcmp(ptc_result_output(result, NULL), "right None\n--- stderr ---\ne\n") == 0 ||
               strcmp(ptc_result_output(result, NULL), "right None\n--- stderr ---\ne") == 0;
    ptc_engine_free(engine);
    dup2(output, 1);
    dup2(errors, 2);
    printf("%s\n", is_right ? "" : ptc_result_json(result, NULL));
    CHECK(is_right);
    ptc_result_free(result);
}

static int descriptors_that_survive_exec(void)
{
    int fd, found = 0;
    for (fd = 0; fd < 1000; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !(flags & FD_CLOEXEC)) found++;
    }
    return found;
}

static void every_descriptor_closes_on_exec(void)
{
    const int before = descriptors_that_survive_exec();
    ptc_engine *engine = pulling();
    ptc_run *run = start(engine, IMPORT "a()");
    ptc_event *event = skip_to(run, PTC_EVENT_CALL);
    CHECK(ptc_run_fd(run) >= 0);
    CHECK_INT(descriptors_that_survive_exec(), before);
    reply(ptc_call_id(ptc_event_call(event)), "null");
    ptc_event_free(event);
    check_end(run, PTC_STATUS_SUCCESS, NULL);
    ptc_engine_free(engine);
}

/* A host that writes into a pipe without readers would be killed; the library's own writes must not be the cause. */
static void no_sigpipe(void)
{
    ptc_host host = make_host(answer_null, ignore_event, NULL, 1);
    ptc_engine *engine = make_engine(CONFIG, &host);
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    check_result(execute(engine,
                         IMPORT
                         "import os, threading, signal\n"
                         "for i in range(4): threading.Thread(target=a, daemon=True).start()\n"
                         "os.kill(os.getpid(), signal.SIGKILL)"),
                 PTC_STATUS_ERROR, NULL);
    ptc_engine_free(engine);
}

const struct test manners_tests[] = {
    TEST(nothing_is_left_behind),
    TEST(a_closed_engine_holds_no_threads),
    TEST(the_state_of_the_process_is_untouched),
    TEST(the_script_sees_nothing_of_the_hosts_signals),
    TEST(signals_stay_with_the_host),
    TEST(a_host_that_ignores_sigchld),
    TEST(a_host_that_wants_no_zombies),
    TEST(a_host_that_reaps_every_child),
    TEST(a_host_that_reaps_in_its_handler),
    TEST(children_of_the_host_are_its_own),
    TEST(a_host_without_standard_streams),
    TEST(every_descriptor_closes_on_exec),
    TEST(no_sigpipe),
    END_OF_TESTS
};
