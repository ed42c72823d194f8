/* Runs the tests of one theme, or one test of it: harness THEME [TEST]. Each test has a process and a directory of its
 * own. The exit status is the number of those that failed. */
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name;
    const struct test *tests;
} THEMES[] = {
    { "arguments", argument_tests },
    { "calls", call_tests },
    { "events", event_tests },
    { "runs", run_tests },
    { "engines", engine_tests },
    { "manners", manners_tests },
    { "fork", fork_tests },
    { "panic", panic_tests },
};

/* Only a test that hangs runs this long. */
enum { HANG_SECONDS = 300 };

static char directory[256];

static void make_directory(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/ptc-c-XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp(directory) == NULL) {
        printf("cannot make %s\n", directory);
        exit(100);
    }
}

/* What a test leaves in its directory is a failure of its own. */
static int remove_directory(void)
{
    if (rmdir(directory) == 0) return 0;
    printf("%s: left behind:\n", directory);
    DIR *stream = opendir(directory);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[600];
        if (entry->d_name[0] == '.') continue;
        printf("  %s\n", entry->d_name);
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        unlink(path);
        rmdir(path);
    }
    if (stream != NULL) closedir(stream);
    rmdir(directory);
    return 1;
}

static int run_test(const struct test *test)
{
    int status = 0, failed;
    pid_t pid;
    make_directory();
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        setenv("TMPDIR", directory, 1);
        alarm(HANG_SECONDS);
        test->run();
        fflush(stdout);
        /* No exit handlers: what must be gone is gone by now or never. */
        _exit(0);
    }
    failed = pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
    if (failed && WIFSIGNALED(status)) printf("killed by signal %d\n", WTERMSIG(status));
    failed |= remove_directory();
    printf("%s %s\n", failed ? "FAILED" : "ok", test->name);
    fflush(stdout);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0, seen = 0;
    size_t i;
    for (i = 0; argc > 1 && i < sizeof THEMES / sizeof *THEMES; i++) {
        const struct test *test = THEMES[i].tests;
        if (strcmp(THEMES[i].name, argv[1]) != 0) continue;
        for (; test->name != NULL; test++) {
            if (argc > 2 && strcmp(test->name, argv[2]) != 0) continue;
            failed += run_test(test);
            seen++;
        }
    }
    if (seen == 0) {
        printf("there is no such test\n");
        return 100;
    }
    return failed > 99 ? 99 : failed;
}
