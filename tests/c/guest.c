/*
 * The engine as a guest in difficult hosts: `guest SCENARIO`. Each scenario prepares a host, runs scripts in it, and
 * then the host must be what it was: descriptors, threads, children, files, signal mask and dispositions, umask, working
 * directory, dumpable flag. Exit status 0 when all of it holds; else a line on standard error says what did not.
 */
#include "ptc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int report = 2; /* where complaints go, also when standard error is closed */

static void fail(int line, const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    int used = snprintf(text, sizeof text, "guest.c:%d: ", line);
    used += vsnprintf(text + used, sizeof text - (size_t)used - 1, format, args);
    va_end(args);
    if (used > (int)sizeof text - 2) used = (int)sizeof text - 2;
    text[used++] = '\n';
    if (write(report, text, (size_t)used) < 0) _exit(3);
    _exit(1);
}

#define CHECK(condition, ...) do { if (!(condition)) fail(__LINE__, __VA_ARGS__); } while (0)

/* ---- the engine, used in the plainest way ---- */

static const char CONFIG[] =
    "{\"code_execution\": {\"kill_grace\": 1, \"max_tool_calls\": 1000},"
    " \"tools\": [{\"name\": \"echo\", \"description\": \"\", \"input_schema\": {\"type\": \"object\","
    " \"properties\": {\"text\": {\"type\": \"string\"}}}}]}";

static void dispatch(void *user_data, const ptc_call *call) {
    (void)user_data;
    size_t length;
    const char *args = ptc_call_args(call, &length);
    ptc_error *error = ptc_call_reply(ptc_call_id(call), args, length);
    ptc_error_free(error); /* too late is no fault of the host's */
}

static ptc_engine *new_engine(void) {
    ptc_host host = {0};
    host.struct_size = sizeof host;
    host.dispatch = dispatch;
    ptc_engine *engine = NULL;
    ptc_error *error = ptc_engine_new(CONFIG, strlen(CONFIG), &host, &engine);
    CHECK(!error, "ptc_engine_new: %s", ptc_error_message(error, NULL));
    return engine;
}

static ptc_result *execute(ptc_engine *engine, const char *code, const char *options) {
    ptc_result *result = NULL;
    ptc_error *error = ptc_execute(engine, code, strlen(code), options, strlen(options), NULL, &result);
    CHECK(!error, "ptc_execute: %s", ptc_error_message(error, NULL));
    return result;
}

#ifdef PTC_PORTABLE
enum { PORTABLE = 1 };
#else
enum { PORTABLE = 0 };
#endif

/* Runs `code`, which must end with this status and contain this text in its result. */
static void expect(ptc_engine *engine, const char *code, const char *options, int status, const char *text) {
    ptc_result *result = execute(engine, code, options);
    const char *json = ptc_result_json(result, NULL);
    CHECK(ptc_result_status(result) == status && strstr(json, text), "expected status %d with %s, got %s", status, text, json);
    ptc_result_free(result);
}

static const char CALL[] = "from hermes_tools import echo\nprint(echo(text='hello'))\n";
static const char CALLED[] = "{'text': 'hello'}";

/* The ordinary tests of an engine in a strange place. */
static void work(ptc_engine *engine) {
    expect(engine, CALL, "", PTC_STATUS_SUCCESS, CALLED);
    expect(engine, "import sys; print('x'); sys.exit(7)", "", PTC_STATUS_ERROR, "\"output\":\"x\\n\"");
    expect(engine, "import os; os.kill(os.getpid(), 9)", "", PTC_STATUS_ERROR, "\"status\":\"error\"");
    expect(engine, "while True: pass", "{\"timeout\": 0.3}", PTC_STATUS_TIMEOUT, "timed out after 0.3s");
}

/* ---- what a host is ---- */

typedef struct {
    char descriptors[8192];
    int threads;
    sigset_t mask;
    struct sigaction actions[32];
    mode_t umask;
    char cwd[4096];
    int dumpable;
    uid_t owner; /* of /proc/self/environ, which changes with the dumpable flag */
} Host;

static int compare_ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void list_descriptors(char *text, size_t size) {
    int found[1024], count = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir, "/proc/self/fd: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir)) && count < 1024;)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir)) found[count++] = atoi(entry->d_name);
    closedir(dir);
    qsort(found, (size_t)count, sizeof *found, compare_ints);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < count && used + 300 < size; i++) {
        char path[64], target[256];
        snprintf(path, sizeof path, "/proc/self/fd/%d", found[i]);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        used += (size_t)snprintf(text + used, size - used, "%d=%s ", found[i], target);
    }
}

static int count_entries(const char *path) {
    int count = 0;
    DIR *dir = opendir(path);
    if (!dir) return -1;
    for (struct dirent *entry; (entry = readdir(dir));) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void look(Host *host) {
    memset(host, 0, sizeof *host);
    list_descriptors(host->descriptors, sizeof host->descriptors);
    host->threads = count_entries("/proc/self/task");
    pthread_sigmask(SIG_SETMASK, NULL, &host->mask);
    for (int signal = 1; signal < 32; signal++) sigaction(signal, NULL, &host->actions[signal]);
    umask(host->umask = umask(0));
    if (!getcwd(host->cwd, sizeof host->cwd)) strcpy(host->cwd, "gone");
    host->dumpable = prctl(PR_GET_DUMPABLE);
    struct stat about;
    CHECK(stat("/proc/self/environ", &about) == 0, "stat: %s", strerror(errno));
    host->owner = about.st_uid;
}

static char temp[256]; /* this scenario's own TMPDIR */

/* A thread that was joined may be listed a moment longer: it is joined when the kernel clears its id, just before. */
static int settled_threads(int expected) {
    for (int i = 0; i < 2000 && count_entries("/proc/self/task") != expected; i++) usleep(1000);
    return count_entries("/proc/self/task");
}

static void compare(const Host *before) {
    settled_threads(before->threads);
    Host after;
    look(&after);
    CHECK(!strcmp(before->descriptors, after.descriptors), "descriptors were %s and are %s", before->descriptors, after.descriptors);
    CHECK(before->threads == after.threads, "threads were %d and are %d", before->threads, after.threads);
    for (int signal = 1; signal < 65; signal++)
        CHECK(sigismember(&before->mask, signal) == sigismember(&after.mask, signal), "the mask has changed at %d", signal);
    for (int signal = 1; signal < 32; signal++) {
        const struct sigaction *a = &before->actions[signal], *b = &after.actions[signal];
        CHECK(a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags, "the disposition of signal %d has changed", signal);
    }
    CHECK(before->umask == after.umask, "umask was %o and is %o", before->umask, after.umask);
    CHECK(!strcmp(before->cwd, after.cwd), "cwd was %s and is %s", before->cwd, after.cwd);
    CHECK(before->dumpable == after.dumpable && before->owner == after.owner, "the dumpable flag has changed");
    errno = 0;
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "there is a child left");
    int files = count_entries(temp);
    CHECK(files <= 0, "%d files are left in %s", files, temp);
}

/* The usual way: an engine lives and works between two looks at the host. */
static void live(void) {
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    work(engine);
    ptc_engine_free(engine);
    compare(&before);
}

/* ---- the scenarios ---- */

static void plain(void) { live(); }

static void sigchld_ignored(void) {
    signal(SIGCHLD, SIG_IGN);
    live();
}

static void sigchld_no_zombies(void) {
    struct sigaction action = {0};
    action.sa_handler = SIG_DFL;
    action.sa_flags = SA_NOCLDWAIT;
    sigaction(SIGCHLD, &action, NULL);
    live();
}

static void *reap_everything(void *stop) {
    while (!*(volatile int *)stop) {
        if (waitpid(-1, NULL, 0) < 0) usleep(500); /* nothing to wait for just now */
    }
    return NULL;
}

static void reaper(void) {
    Host before;
    look(&before);
    int stop = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, reap_everything, &stop);
    ptc_engine *engine = new_engine();
    for (int i = 0; i < 5; i++) work(engine);
    ptc_engine_free(engine);
    stop = 1;
    pthread_join(thread, NULL);
    compare(&before);
}

static void own_children(void) {
    /* The host's own children are the host's to wait for. */
    pid_t mine[5];
    for (int i = 0; i < 5; i++) {
        mine[i] = fork();
        if (mine[i] == 0) _exit(40 + i);
    }
    ptc_engine *engine = new_engine();
    work(engine);
    ptc_engine_free(engine);
    for (int i = 0; i < 5; i++) {
        int status = 0;
        CHECK(waitpid(mine[i], &status, 0) == mine[i] && WEXITSTATUS(status) == 40 + i, "the status of a child of the host is lost");
    }
    live();
}

static void sigpipe_default(void) {
    signal(SIGPIPE, SIG_DFL);
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    /* The script is gone before it has read an answer that no socket buffer holds. */
    expect(engine,
           "import os, threading, time\nfrom hermes_tools import echo\n"
           "threading.Thread(target=lambda: echo(text='x' * (8 << 20))).start()\ntime.sleep(0.1)\nos._exit(0)\n",
           "", PTC_STATUS_SUCCESS, "\"exit_code\":0");
    work(engine);
    ptc_engine_free(engine);
    compare(&before);
}

static void signals_blocked(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    work(engine);
    /* SIGTERM reaches the script all the same: it ends by that signal and not by SIGKILL. */
    expect(engine, "import time\ntime.sleep(1000)", "{\"timeout\": 1}", PTC_STATUS_TIMEOUT, "\"signal\":15");
    expect(engine, "import signal\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []))", "", PTC_STATUS_SUCCESS, "\"output\":\"set()\\n\"");
    ptc_engine_free(engine);
    compare(&before);
}

static void signal_storm_handler(int signal) { (void)signal; }

static void signal_storm(void) {
    /* As Go and profilers do it: a signal every millisecond that interrupts every call. */
    struct sigaction action = {0};
    action.sa_handler = signal_storm_handler;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    Host before;
    look(&before);
    setitimer(ITIMER_REAL, &every, NULL);
    ptc_engine *engine = new_engine();
    for (int i = 0; i < 3; i++) work(engine);
    ptc_engine_free(engine);
    setitimer(ITIMER_REAL, &never, NULL);
    compare(&before);
}

static void leaky_descriptors(void) {
    for (int i = 0; i < 20; i++) CHECK(dup2(0, 100 + 37 * i) >= 0, "dup2: %s", strerror(errno));
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur > 19999) CHECK(dup2(0, 19999) >= 0, "dup2: %s", strerror(errno));
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    expect(engine, "import os\nprint(sorted(os.listdir('/proc/self/fd')))", "", PTC_STATUS_SUCCESS,
           PORTABLE ? "['0', '1', '2', '3', '4']" /* 3 is the leash that Python watches */ : "['0', '1', '2', '3']");
    work(engine);
    ptc_engine_free(engine);
    compare(&before);
}

static void descriptors_exhausted(void) {
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t old = limit.rlim_cur;
    limit.rlim_cur = 120;
    setrlimit(RLIMIT_NOFILE, &limit);
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    work(engine);
    int taken[200], count = 0, errors = 0, successes = 0;
    while ((taken[count] = dup(0)) >= 0) count++;
    for (int spare = 0; spare <= 60 && count > 0; spare++) {
        ptc_result *result = NULL;
        ptc_error *error = ptc_execute(engine, CALL, strlen(CALL), "", 0, NULL, &result);
        if (error) {
            CHECK(ptc_error_code(error) == PTC_CODE_IO, "with %d spare descriptors: %s", spare, ptc_error_message(error, NULL));
            ptc_error_free(error);
            errors++;
        } else {
            const char *json = ptc_result_json(result, NULL);
            if (ptc_result_status(result) == PTC_STATUS_SUCCESS) successes++;
            else CHECK(strstr(json, "escriptor") || strstr(json, "open files"), "with %d spare descriptors: %s", spare, json);
            ptc_result_free(result);
        }
        close(taken[--count]);
    }
    while (count > 0) close(taken[--count]);
    CHECK(errors > 0 && successes > 0, "%d errors, %d successes", errors, successes);
    work(engine);
    ptc_engine_free(engine);
    compare(&before);
    limit.rlim_cur = old;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void deleted_cwd(void) {
    char path[300];
    snprintf(path, sizeof path, "%s/gone", temp);
    CHECK(mkdir(path, 0700) == 0 && chdir(path) == 0 && rmdir(path) == 0, "%s: %s", path, strerror(errno));
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    expect(engine, CALL, "", PTC_STATUS_SUCCESS, "the script ran in a temporary directory instead");
    work(engine);
    ptc_engine_free(engine);
    compare(&before);
}

static void long_tmpdir(void) {
    /* The socket's path has 107 bytes; CPython and the kernel agree on that. */
    char path[700];
    int used = snprintf(path, sizeof path, "%s", temp);
    while (used < 300) {
        used += snprintf(path + used, sizeof path - (size_t)used, "/%060d", used);
        CHECK(mkdir(path, 0700) == 0, "%s: %s", path, strerror(errno));
    }
    setenv("TMPDIR", path, 1);
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    work(engine);
    ptc_engine_free(engine);
    CHECK(count_entries(path) == 0, "something is left in %s", path);
    while (strcmp(path, temp)) {
        CHECK(rmdir(path) == 0, "%s: %s", path, strerror(errno));
        *strrchr(path, '/') = 0;
    }
    compare(&before);
}

static void missing_tmpdir(void) {
    setenv("TMPDIR", "/no/such/directory", 1);
    live();
}

static void read_only_tmpdir(void) {
    char path[300];
    snprintf(path, sizeof path, "%s/ro", temp);
    CHECK(mkdir(path, 0500) == 0, "%s: %s", path, strerror(errno));
    setenv("TMPDIR", path, 1);
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    work(engine);
    ptc_engine_free(engine);
    CHECK(rmdir(path) == 0, "%s: %s", path, strerror(errno));
    compare(&before);
}

/* Whether this process may mount, for itself alone. */
static int in_own_mount_namespace(void) {
    const long new_mount_namespace = 0x00020000; /* CLONE_NEWNS */
    return syscall(SYS_unshare, new_mount_namespace) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void mount_small(char *path, size_t size, const char *name, const char *options) {
    snprintf(path, size, "%s/%s", temp, name);
    CHECK(mkdir(path, 0700) == 0, "%s: %s", path, strerror(errno));
    CHECK(mount("tmpfs", path, "tmpfs", 0, options) == 0, "%s: %s", path, strerror(errno));
}

static void full_tmpdir(void) {
    char path[300];
    Host before;
    ptc_engine *engine;
    if (!in_own_mount_namespace()) {
        printf("skipped: this user may not mount\n");
        exit(0);
    }
    look(&before);

    /* Nearly full from the start: another place is taken. */
    mount_small(path, sizeof path, "full", "size=64k,mode=700");
    setenv("TMPDIR", path, 1);
    engine = new_engine();
    work(engine);
    ptc_engine_free(engine);
    CHECK(count_entries(path) == 0, "something is left in %s", path);
    CHECK(umount(path) == 0 && rmdir(path) == 0, "%s: %s", path, strerror(errno));

    /* Full on the way: a result that says so, nothing left, and the next run works. Then a script fills it up itself. */
    mount_small(path, sizeof path, "small", "size=1m,mode=700");
    setenv("TMPDIR", path, 1);
    engine = new_engine();
    work(engine);
    size_t size = 2 << 20;
    char *large = malloc(size + 1);
    memset(large, '#', size);
    large[size] = 0;
    expect(engine, large, "", PTC_STATUS_ERROR, "No space left on device");
    expect(engine, large, "", PTC_STATUS_ERROR, path);
    CHECK(count_entries(path) == 0, "something is left in %s", path);
    expect(engine, "import tempfile\nf = tempfile.NamedTemporaryFile(delete=False)\nprint('filling')\nf.write(bytes(2 << 20))\n", "",
           PTC_STATUS_ERROR, "filling\\n");
    free(large);
    work(engine);
    ptc_engine_free(engine);
    CHECK(count_entries(path) == 1, "what the script wrote is its own");
    CHECK(umount(path) == 0 && rmdir(path) == 0, "%s: %s", path, strerror(errno));
    compare(&before);
}

static void strange_umask(void) {
    mode_t masks[] = {0777, 0};
    for (int i = 0; i < 2; i++) {
        umask(masks[i]);
        Host before;
        look(&before);
        ptc_engine *engine = new_engine();
        expect(engine,
               "import os, stat\nd = os.path.dirname(os.path.abspath(__file__))\n"
               "print(*(oct(stat.S_IMODE(os.stat(p).st_mode)) for p in (d, __file__, os.environ['PTC_RPC_SOCKET'])))",
               "", PTC_STATUS_SUCCESS, "0o700 0o600 0o600");
        work(engine);
        ptc_engine_free(engine);
        compare(&before);
    }
    umask(022);
}

static void closed_streams(void) {
    /* All eight ways to have standard streams closed. */
    report = fcntl(2, F_DUPFD, 200);
    int saved[3];
    for (int fd = 0; fd < 3; fd++) saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 210);
    for (int closed = 0; closed < 8; closed++) {
        for (int fd = 0; fd < 3; fd++)
            if (closed & 1 << fd) close(fd);
        live();
        for (int fd = 0; fd < 3; fd++) dup2(saved[fd], fd);
    }
    for (int fd = 0; fd < 3; fd++) close(saved[fd]);
}

static int code_of(ptc_error *error) {
    int code = error ? ptc_error_code(error) : 0;
    ptc_error_free(error);
    return code;
}

static void forked_host(void) {
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    ptc_run *run = NULL;
    const char *code = "import time\ntime.sleep(1000)";
    CHECK(!ptc_run_start(engine, code, strlen(code), "", 0, NULL, &run), "ptc_run_start");
    pid_t child = fork();
    if (child == 0) {
        /* What the parent made is the parent's. */
        ptc_run *other = NULL;
        ptc_result *result = NULL;
        ptc_event *event = NULL;
        CHECK(code_of(ptc_run_start(engine, "1", 1, "", 0, NULL, &other)) == PTC_CODE_STATE && !other, "start in a forked host");
        CHECK(code_of(ptc_execute(engine, "1", 1, "", 0, NULL, &result)) == PTC_CODE_STATE && !result, "execute in a forked host");
        CHECK(code_of(ptc_run_wait(run, 0, &result)) == PTC_CODE_STATE && !result, "wait in a forked host");
        CHECK(code_of(ptc_run_next_event(run, 0, &event)) == PTC_CODE_STATE && !event, "next event in a forked host");
        CHECK(code_of(ptc_engine_close(engine, 0)) == PTC_CODE_STATE, "close in a forked host");
        ptc_run_cancel(run, NULL, 0);
        ptc_run_free(run);
        ptc_engine_free(engine);
        /* An engine of its own works. */
        engine = new_engine();
        expect(engine, CALL, "", PTC_STATUS_SUCCESS, CALLED);
        ptc_engine_free(engine);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the forked host failed: %x", status);
    ptc_result *result = NULL;
    CHECK(!ptc_run_wait(run, 0, &result) && !result, "the run was hurt by the forked host");
    ptc_run_cancel(run, NULL, 0);
    CHECK(!ptc_run_wait(run, -1, &result) && ptc_result_status(result) == PTC_STATUS_INTERRUPTED, "cancel");
    ptc_result_free(result);
    ptc_run_free(run);
    work(engine);
    ptc_engine_free(engine);
    compare(&before);
}

static void *run_one(void *engine) {
    expect(engine, CALL, "{\"timeout\": 600}", PTC_STATUS_SUCCESS, CALLED);
    return NULL;
}

static void sixty_four_threads(void) {
    Host before;
    look(&before);
    ptc_engine *engine = new_engine();
    pthread_t threads[64];
    for (int i = 0; i < 64; i++) CHECK(pthread_create(&threads[i], NULL, run_one, engine) == 0, "pthread_create");
    for (int i = 0; i < 64; i++) pthread_join(threads[i], NULL);
    ptc_engine_free(engine);
    compare(&before);
}

static long resident_kib(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &pages, &resident) == 2, "statm");
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void thousand_engines(void) {
    Host before;
    look(&before);
    long resident = 0;
    for (int i = 0; i < 1000; i++) {
        ptc_engine *engine = new_engine();
        if (i % 250 == 0) expect(engine, CALL, "", PTC_STATUS_SUCCESS, CALLED);
        ptc_engine_free(engine);
        if (i == 500) resident = resident_kib();
    }
    CHECK(resident_kib() < resident + 2048, "memory has grown from %ld KiB to %ld", resident, resident_kib());
    compare(&before);
}

typedef struct {
    const char *name;
    void (*run)(void);
} Scenario;

static const Scenario SCENARIOS[] = {
    {"plain", plain},
    {"sigchld_ignored", sigchld_ignored},
    {"sigchld_no_zombies", sigchld_no_zombies},
    {"reaper", reaper},
    {"own_children", own_children},
    {"sigpipe_default", sigpipe_default},
    {"signals_blocked", signals_blocked},
    {"signal_storm", signal_storm},
    {"leaky_descriptors", leaky_descriptors},
    {"descriptors_exhausted", descriptors_exhausted},
    {"deleted_cwd", deleted_cwd},
    {"long_tmpdir", long_tmpdir},
    {"missing_tmpdir", missing_tmpdir},
    {"read_only_tmpdir", read_only_tmpdir},
    {"full_tmpdir", full_tmpdir},
    {"strange_umask", strange_umask},
    {"closed_streams", closed_streams},
    {"forked_host", forked_host},
    {"sixty_four_threads", sixty_four_threads},
    {"thousand_engines", thousand_engines},
};

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: guest SCENARIO DIRECTORY\n");
        return 2;
    }
    snprintf(temp, sizeof temp, "%s", argv[2]);
    setenv("TMPDIR", temp, 1);
    for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; i++) {
        if (!strcmp(SCENARIOS[i].name, argv[1])) {
            SCENARIOS[i].run();
            return 0;
        }
    }
    fprintf(stderr, "there is no scenario %s\n", argv[1]);
    return 2;
}
