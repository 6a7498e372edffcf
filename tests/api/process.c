// SPDX-License-Identifier: MIT OR 0BSD
// Child processes and signals.
#ifndef _GNU_SOURCE // before the first libc header
#  define _GNU_SOURCE 1
#endif
#include "start_by_fork.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

// The seam: signals to a number are counted, and a child may be started by fork, or beside one.
static int n_kills, by_fork, keeps, release_fd = -1;
static int counted_kill(pid_t pid, int signal) {
    n_kills++;
    return kill(pid, signal);
}
// Forks a process that keeps all descriptors of this one until release_fd is closed.
static void fork_keeper(void) {
    int fd[2];
    char c;
    if (pipe(fd) < 0) abort();
    pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        close(fd[1]);
        while (read(fd[0], &c, 1) > 0) {}
        _exit(0);
    }
    close(fd[0]);
    release_fd = fd[1];
}
#define VOLT_START_CHILD(child_)                                                                   \
    (keeps ? fork_keeper() : (void)0,                                                              \
     by_fork ? START_BY_FORK(child_) : volt__sys_start_child(child_))
// A filter of system calls may refuse pidfd_send_signal, with an error of its author's choice.
static int refused_with;
#include <sys/syscall.h>
#if defined(SYS_pidfd_send_signal)
#  define SEND_SIGNAL SYS_pidfd_send_signal
#else
#  define SEND_SIGNAL 424
#endif
#define FIRST_OF(first_, ...) first_
#define refusable_syscall(...)                                                                     \
    (FIRST_OF(__VA_ARGS__, ~) == SEND_SIGNAL && refused_with ? (errno = refused_with, -1L)         \
                                                             : syscall(__VA_ARGS__))
#define HOOK_kill ~, counted_kill
#define HOOK_syscall ~, refusable_syscall
#include "hook.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <dirent.h>
#include <grp.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/wait.h>

// The arguments of `sh -c TEXT`, which outlive an await.
#define SH(text_) sh_argv((const char *const[1]){ text_ })
static const char *const *sh_argv(const char *const *text) {
    static const char *args[16][4];
    static int i;
    const char **a = args[i++ % 16];
    a[0] = "sh", a[1] = "-c", a[2] = text[0], a[3] = NULL;
    return a;
}
static int count_fds(void) {
    int n = 0;
    for (int fd = 0; fd < 300; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}
static void no_child_is_left(void) {
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_EQ(errno, ECHILD);
}

// ---- starting

typedef struct {
    volt_frame frame;
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    char out[400];
    int64_t n, rc;
} runner;
// Runs a process, and collects what it writes.
static volt_poll runner_run(volt_cx *cx, runner *r) {
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_process_start(cx, &r->p, &r->o));
    if (r->rc < 0) VOLT_RETURN(r->rc);
    r->n = 0;
    for (;;) {
        VOLT_AWAIT(r->rc, volt_read(cx, r->p.out, r->out + r->n, sizeof r->out - 1 - (size_t)r->n));
        if (r->rc <= 0) break;
        r->n += r->rc;
    }
    r->out[r->n] = 0;
    VOLT_AWAIT(r->rc, volt_process_wait(cx, &r->p, &r->end));
    volt_process_close(cx, &r->p);
    VOLT_END(r->rc);
}
ROOT_TEST(process_runs_with_its_streams_directory_and_environment, {
    runner r;
    int64_t rc;
    int fd;
    volt_fd_pair pair;
}) {
    static const char *const env[] = { "A=1", "PATH=/bin:/usr/bin", NULL };
    VOLT_BEGIN(cx, s);
    s->fd = open("/dev/null", O_RDONLY);
    s->pair = (volt_fd_pair){ .here = s->fd, .there = 9 };
    s->r.o.argv = SH("pwd; echo $A; echo err >&2; cat <&9; exit 3");
    s->r.o.envp_or_null = env;
    s->r.o.dir_or_null = "/usr";
    s->r.o.in = VOLT_STDIO_NULL;
    s->r.o.out = VOLT_STDIO_PIPE;
    s->r.o.err = VOLT_STDIO_STDOUT;
    s->r.o.fds = &s->pair;
    s->r.o.n_fds = 1;
    VOLT_AWAIT(s->rc, runner_run(cx, &s->r));
    CHECK_EQ(s->rc, 0);
    CHECK_STR(s->r.out, "/usr\n1\nerr\n");
    CHECK_EQ(s->r.end.code, 3);
    CHECK_EQ(s->r.end.signal, 0);
    CHECK(s->r.p.pid > 0);
    close(s->fd);
    no_child_is_left();
    VOLT_END(0);
}
// The signals of a child are as after a login, although volt's threads block them and this process
// ignores some. Signals 32 to 34 belong to the C library: a child of posix_spawn, such as a test
// that make has started, ignores one of them, and sigaction changes none.
ROOT_TEST(process_begins_with_default_signals, {
    runner r;
    int64_t rc;
}) {
    static const char *const args[] = { "sed", "-n", "/^Sig[BIC]/p", "/proc/self/status", NULL };
    VOLT_BEGIN(cx, s);
    signal(SIGUSR1, SIG_IGN);
    s->r.o.argv = args;
    s->r.o.out = VOLT_STDIO_PIPE;
    VOLT_AWAIT(s->rc, runner_run(cx, &s->r));
    uint64_t blocked, ignored, caught, of_libc = UINT64_C(7) << 31;
    CHECK_EQ(sscanf(s->r.out, "SigBlk: %" SCNx64 " SigIgn: %" SCNx64 " SigCgt: %" SCNx64, &blocked,
                    &ignored, &caught), 3);
    CHECK_EQ(blocked, 0);
    CHECK_EQ(ignored & ~of_libc, 0);
    CHECK_EQ(caught, 0);
    no_child_is_left();
    VOLT_END(0);
}
ROOT_TEST_ALL(process_start_that_fails_returns_the_error_and_leaves_nothing, {
    volt_process p;
    volt_process_options o;
    int64_t rc;
    int before, i;
    volt_fd_pair pair;
    rlim_t limit;
}) {
    static const char *const none[] = { "no-such-program", NULL };
    static const char *const slash[] = { "/no/such/program", NULL };
    static const char *const not_exec[] = { "/dev/null", NULL };
    static const char *const empty[] = { NULL };
    static const char *const nameless[] = { "", NULL };
    static const struct {
        const char *const *argv;
        const char *dir;
        int error;
    } cases[] = { { none, NULL, -ENOENT },      { slash, NULL, -ENOENT },
                  { not_exec, NULL, -EACCES },  { empty, NULL, -EINVAL },
                  { nameless, NULL, -ENOENT },  { none, "/no/such/dir", -ENOENT },
                  { none, "/dev/null", -ENOTDIR } };
    VOLT_BEGIN(cx, s);
    s->o.argv = SH("exit 0"); // the pool's thread exists from here on
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
    s->before = count_fds();
    s->o.in = s->o.out = s->o.err = VOLT_STDIO_PIPE;
    for (s->i = 0; s->i < (int)(sizeof cases / sizeof cases[0]); s->i++) {
        s->o.argv = cases[s->i].argv;
        s->o.dir_or_null = cases[s->i].dir;
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, cases[s->i].error);
        CHECK_EQ(s->p.pid, 0);
        CHECK(s->p.in == -1 && s->p.out == -1 && s->p.err == -1);
        CHECK_EQ(volt_process_signal(&s->p, 0), -ESRCH);
        VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
        CHECK_EQ(s->rc, -ECHILD);
        VOLT_AWAIT(s->rc, volt_process_end(cx, &s->p, 0, NULL));
        CHECK_EQ(s->rc, -ECHILD);
    }
    s->o.dir_or_null = NULL;
    s->o.argv = SH("exit 0");
    s->pair = (volt_fd_pair){ 250, 7 }; // not open
    s->o.fds = &s->pair;
    s->o.n_fds = 1;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, -EBADF);
    s->pair.here = -1; // as of an open that failed
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, -EBADF);
    // the child finds no number for its copies: neither for that of the report, nor for one more
    for (by_fork = 0; by_fork < 2; by_fork++) {
        s->limit = set_fd_limit(260);
        s->pair = (volt_fd_pair){ 0, 260 };
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, -EINVAL);
        s->pair.there = 258;
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, -EMFILE);
        set_fd_limit(s->limit);
    }
    by_fork = 0;
    CHECK_EQ(count_fds(), s->before);
    no_child_is_left();
    VOLT_END(0);
}
ROOT_TEST_1(process_options_that_make_no_sense_are_refused, {
    volt_process p;
    volt_process_options o;
    volt_fd_pair pair;
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 7; s->i++) {
        memset(&s->o, 0, sizeof s->o);
        s->o.argv = s->i == 0 ? NULL : SH("exit 0");
        if (s->i == 1) s->o.out = VOLT_STDIO_STDOUT - 1;
        if (s->i == 2) s->o.in = VOLT_STDIO_STDOUT;
        if (s->i == 3) s->o.out = VOLT_STDIO_STDOUT;
        s->o.has_ids = s->i == 4 || s->i == 5; // ids of -1 would be those of this process
        if (s->i == 4) s->o.uid = (unsigned)-1;
        if (s->i == 5) s->o.gid = (unsigned)-1;
        s->pair = (volt_fd_pair){ 0, INT_MAX };
        s->o.fds = &s->pair;
        s->o.n_fds = s->i == 6;
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, -EINVAL);
    }
    no_child_is_left();
    VOLT_END(0);
}
// The errors may go where the output goes: to a descriptor, to /dev/null, or where that of this
// process goes.
ROOT_TEST_1(process_errors_follow_its_output, {
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    int fd[2], err, null, i;
    char buf[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->o.err = VOLT_STDIO_STDOUT;
    CHECK_EQ(volt_pipe(s->fd), 0);
    s->o.argv = SH("echo err >&2");
    s->o.out = s->fd[1];
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
    CHECK_EQ(read(s->fd[0], s->buf, sizeof s->buf), 4);
    CHECK_EQ(memcmp(s->buf, "err\n", 4), 0);
    // standard error of this process is another file then: a child that got it would be found out
    s->err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    s->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (s->i = 0; s->i < 2; s->i++) {
        static const char null[] = "for i in 0 1 2; do [ /proc/self/fd/$i -ef /dev/null ] || exit; "
                                   "done";
        s->o.argv = SH(s->i ? "[ /proc/self/fd/2 -ef /proc/self/fd/1 ]" : null);
        s->o.in = s->o.out = s->i ? VOLT_STDIO_INHERIT : VOLT_STDIO_NULL;
        CHECK_EQ(dup2(s->i ? s->null : s->fd[1], STDERR_FILENO), STDERR_FILENO);
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(dup2(s->err, STDERR_FILENO), STDERR_FILENO);
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
        CHECK_EQ(s->end.code, 0);
    }
    close(s->err);
    close(s->null);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
// Where there is no PATH, the directories are those that a shell would search.
ROOT_TEST_1(process_is_found_without_path, {
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    unsetenv("PATH");
    s->o.argv = SH("exit 6");
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
    CHECK(s->rc == 0 && s->end.code == 6);
    VOLT_END(0);
}
ROOT_TEST_1(process_leads_a_session_or_a_group, {
    volt_process p;
    volt_process_options o;
    int64_t rc;
    unsigned i;
}) {
    VOLT_BEGIN(cx, s);
    s->o.argv = SH("read x");
    s->o.in = VOLT_STDIO_PIPE;
    for (s->i = 0; s->i < 4; s->i++) {
        s->o.is_session = s->i & 1;
        s->o.is_group = s->i >> 1;
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, 0);
        CHECK_EQ(getsid(s->p.pid), s->o.is_session ? s->p.pid : getsid(0));
        CHECK_EQ(getpgid(s->p.pid), s->i > 0 ? s->p.pid : getpgid(0));
        VOLT_AWAIT(s->rc, volt_process_end(cx, &s->p, 0, NULL));
        CHECK_EQ(s->rc, 0);
        volt_process_close(cx, &s->p);
    }
    no_child_is_left();
    VOLT_END(0);
}

// ---- ids and limits; capabilities are those of a thread and of the threads that it starts

enum { OTHER_ID = 65534 };
// Not every C library comes with <linux/capability.h>.
enum { SETGID = 6, SETUID = 7, SYS_ADMIN = 21, SYS_RESOURCE = 24 };
typedef struct capability_head {
    uint32_t version;
    int thread; // 0: this one
} capability_head;
typedef struct capability_sets {
    uint32_t effective, permitted, inheritable;
} capability_sets;
static const capability_head capabilities = { 0x20080522, 0 };
static int has_capability(int cap) {
    capability_head head = capabilities;
    capability_sets data[2];
    memset(data, 0, sizeof data);
    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective >> cap & 1);
}
static void drop_capability(int cap) {
    capability_head head = capabilities;
    capability_sets data[2];
    if (!has_capability(cap)) return;
    CHECK_EQ(syscall(SYS_capget, &head, data), 0);
    data[0].effective &= ~(1u << cap);
    CHECK_EQ(syscall(SYS_capset, &head, data), 0);
}
typedef struct {
    volt_frame frame;
    runner r;
    int64_t rc;
} other_user;
static volt_poll other_user_run(volt_cx *cx, void *arg) {
    other_user *s = (other_user *)arg;
    VOLT_BEGIN(cx, s);
    s->r.o.argv = SH("id -u; id -g; id -G; id -ru; id -rg");
    s->r.o.out = VOLT_STDIO_PIPE;
    s->r.o.has_ids = 1;
    s->r.o.uid = s->r.o.gid = OTHER_ID;
    VOLT_AWAIT(s->rc, runner_run(cx, &s->r));
    no_child_is_left();
    VOLT_END(s->rc);
}
TEST(process_gets_other_ids_and_no_further_groups) {
    gid_t groups[2] = { 1, 2 };
    other_user s;
    memset(&s, 0, sizeof s);
    if (!has_capability(SETUID) || !has_capability(SETGID)) SKIP("needs root");
    CHECK_EQ(setgroups(2, groups), 0);
    CHECK_EQ(run_on(1, other_user_run, &s), 0);
    CHECK_STR(s.r.out, "65534\n65534\n65534\n65534\n65534\n");
    CHECK_EQ(getuid(), geteuid()); // those of this process stay
    CHECK(has_capability(SETUID));
    CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1); // and it still leaves core dumps
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
    memset(&s, 0, sizeof s);
    CHECK_EQ(run_on(1, other_user_run, &s), 0);
    CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0); // if it was to
}
TEST(process_that_may_not_change_its_ids_does_not_run) {
    static const int caps[] = { SETUID, SETGID };
    for (int i = 0; i < 2; i++) {
        other_user s;
        memset(&s, 0, sizeof s);
        drop_capability(caps[i]);
        CHECK_EQ(run_on(1, other_user_run, &s), -EPERM);
    }
}
static void write_map(int pid, const char *name) {
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0 0 1", 5) != 5) _exit(1);
    close(fd);
}
// Moves this process into a user namespace that has the ids of root alone, which a process outside
// must decide. Returns 0 if that is not possible here.
static int enter_namespace_of_root(void) {
    int entered[2], status, parent = (int)getpid();
    char c;
    CHECK_EQ(pipe(entered), 0);
    pid_t helper = fork();
    if (helper == 0) {
        close(entered[1]);
        if (read(entered[0], &c, 1) != 1) _exit(1);
        write_map(parent, "uid_map");
        write_map(parent, "gid_map");
        _exit(0);
    }
    if (unshare(CLONE_NEWUSER) == 0) CHECK_EQ(write(entered[1], "", 1), 1);
    for (int i = 0; i < 2; i++) close(entered[i]);
    CHECK_EQ(waitpid(helper, &status, 0), helper);
    return status == 0;
}
TEST(process_cannot_get_ids_that_its_namespace_does_not_have) {
    other_user s;
    memset(&s, 0, sizeof s);
    if (!has_capability(SETUID) || !has_capability(SETGID)) SKIP("needs root");
    if (!enter_namespace_of_root()) SKIP("needs a user namespace");
    CHECK_EQ(run_on(1, other_user_run, &s), -EINVAL);
}
// The limit of a user's processes, which counts threads, too. It does not bind the superuser.
typedef struct {
    volt_frame frame;
    volt_process p;
    volt_process_options o;
    struct rlimit before, none;
    int64_t rc;
    int n_fds;
} limited;
static volt_poll limited_run(volt_cx *cx, void *arg) {
    limited *s = (limited *)arg;
    VOLT_BEGIN(cx, s);
    s->o.argv = SH("exit 0"); // the pool's thread exists from here on
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
    CHECK_EQ(s->rc, 0);
    s->n_fds = count_fds();
    CHECK_EQ(getrlimit(RLIMIT_NPROC, &s->before), 0);
    s->none = s->before;
    s->none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &s->none), 0);
    s->o.out = VOLT_STDIO_PIPE;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &s->before), 0);
    CHECK_EQ(s->rc, -EAGAIN);
    CHECK(s->p.pid == 0 && s->p.out == -1);
    CHECK_EQ(count_fds(), s->n_fds);
    no_child_is_left();
    VOLT_END(0);
}
TEST(process_beyond_the_limit_of_its_user_does_not_start) {
    limited s;
    memset(&s, 0, sizeof s);
    if (getuid() == 0 && setresuid(OTHER_ID, (uid_t)-1, (uid_t)-1) < 0) SKIP("no other user");
    drop_capability(SYS_ADMIN);
    drop_capability(SYS_RESOURCE);
    CHECK_EQ(run_on(1, limited_run, &s), 0);
}
// As a shell does: an entry of PATH that is empty stands for the current directory.
ROOT_TEST_1(process_is_searched_for_in_each_directory_of_path, {
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    int64_t rc;
    int i;
}) {
    static const struct {
        const char *path;
        int rc;
    } cases[] = { { ".", 0 }, { "", 0 }, { ":/bin", 0 }, { "/bin:", 0 }, { "/none:.", 0 },
                  { "/dev/null:.", 0 },     // no directory
                  { "sub:.", 0 },           // there it may not be run
                  { "sub", -EACCES }, { "sub:/none", -EACCES }, { "/none", -ENOENT },
                  { "bad:.", -ENOEXEC }, // an error of its own: no further one is tried
                  { NULL, 0 }, { NULL, -ENOENT } }; // as long as a path may be; longer
    static const char *const argv[] = { "volt-tool", NULL };
    static char dir[] = "/tmp/volt-path-XXXXXX", dots[PATH_MAX + 1];
    VOLT_BEGIN(cx, s);
    CHECK(mkdtemp(dir));
    CHECK_EQ(chdir(dir), 0);
    CHECK_EQ(mkdir("sub", 0700), 0);
    CHECK_EQ(mkdir("bad", 0700), 0);
    close(open("sub/volt-tool", O_CREAT | O_WRONLY, 0600));
    close(open("bad/volt-tool", O_CREAT | O_WRONLY, 0700));
    for (int i = 0; i < PATH_MAX; i++) dots[i] = i % 2 ? '/' : '.';
    CHECK_EQ(symlink("/bin/true", "volt-tool"), 0);
    s->o.argv = argv;
    for (s->i = 0; s->i < (int)(sizeof cases / sizeof cases[0]); s->i++) {
        const size_t longest = PATH_MAX - 2 - strlen(argv[0]);
        dots[longest + (cases[s->i].rc < 0)] = 0;
        setenv("PATH", cases[s->i].path ? cases[s->i].path : dots, 1);
        dots[longest] = longest % 2 ? '/' : '.';
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, cases[s->i].rc);
        if (s->rc < 0) continue;
        VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
        CHECK(s->rc == 0 && s->end.code == 0);
    }
    unlink("volt-tool");
    unlink("sub/volt-tool");
    unlink("bad/volt-tool");
    rmdir("sub");
    rmdir("bad");
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(rmdir(dir), 0);
    VOLT_END(0);
}
ROOT_TEST_1(process_gets_as_many_descriptors_as_there_is_room_for, {
    runner r;
    volt_fd_pair pair[VOLT__CHILD_FDS];
    int64_t rc;
    int null;
}) {
    VOLT_BEGIN(cx, s);
    s->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < VOLT__CHILD_FDS; i++) s->pair[i] = (volt_fd_pair){ s->null, 20 + i };
    s->r.o.argv = SH("n=0; for i in /proc/self/fd/[2-9][0-9]; do n=$((n + 1)); done; echo $n");
    s->r.o.out = VOLT_STDIO_PIPE;
    s->r.o.fds = s->pair;
    s->r.o.n_fds = VOLT__CHILD_FDS - 3;
    VOLT_AWAIT(s->rc, runner_run(cx, &s->r));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(atoi(s->r.out), VOLT__CHILD_FDS - 3);
    s->r.o.n_fds++;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->r.p, &s->r.o));
    CHECK_EQ(s->rc, -EINVAL);
    s->r.o.n_fds = 1;
    s->pair[0].there = -1;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->r.p, &s->r.o));
    CHECK_EQ(s->rc, -EINVAL);
    volt_close(cx, s->null);
    no_child_is_left();
    VOLT_END(0);
}
// A program that has closed its standard input, whose number is the end of the first pipe.
ROOT_TEST_1(standard_input_that_is_closed_is_closed_in_the_child, {
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(close(STDIN_FILENO), 0);
    s->o.argv = SH("test ! -e /proc/self/fd/0");
    s->o.out = VOLT_STDIO_PIPE;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
    CHECK(s->end.code == 0 && s->end.signal == 0);
    volt_process_close(cx, &s->p);
    CHECK_EQ(open("/dev/null", O_RDONLY), STDIN_FILENO);
    VOLT_END(0);
}
// Its standard output is another file by now, close-on-exec as all of volt's: a child must not get
// that, neither as its output nor as its errors.
ROOT_TEST_1(child_gets_no_other_file_as_its_standard_output, {
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    int64_t rc;
    int saved;
}) {
    VOLT_BEGIN(cx, s);
    s->saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    CHECK_EQ(close(STDOUT_FILENO), 0);
    CHECK_EQ(eventfd(0, EFD_CLOEXEC), STDOUT_FILENO);
    s->o.argv = SH("test ! -e /proc/self/fd/1 && test ! -e /proc/self/fd/2");
    s->o.err = VOLT_STDIO_STDOUT;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
    CHECK(s->end.code == 0 && s->end.signal == 0);
    volt_process_close(cx, &s->p);
    CHECK_EQ(dup2(s->saved, STDOUT_FILENO), STDOUT_FILENO);
    CHECK_EQ(close(s->saved), 0);
    VOLT_END(0);
}
// Descriptors that trade places, and one that goes to two.
ROOT_TEST_1(process_descriptors_may_trade_places, {
    runner r;
    int64_t rc;
    int a[2], b[2];
    volt_fd_pair pair[4];
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_pipe(s->a), 0);
    CHECK_EQ(volt_pipe(s->b), 0);
    CHECK_EQ(write(s->a[1], "aa\n", 3), 3);
    CHECK_EQ(write(s->b[1], "bb\n", 3), 3);
    for (int i = 0; i < 2; i++) fcntl(i ? s->a[0] : s->b[0], F_SETFL, 0);
    CHECK(s->a[0] < 10 && s->b[0] < 10);
    s->pair[0] = (volt_fd_pair){ s->a[0], s->b[0] };
    s->pair[1] = (volt_fd_pair){ s->b[0], s->a[0] };
    s->pair[2] = (volt_fd_pair){ s->b[0], 9 };
    static char text[80];
    snprintf(text, sizeof text, "read x <&%d; read y <&%d; echo $x $y", s->a[0], s->b[0]);
    s->r.o.argv = SH(text);
    s->r.o.out = VOLT_STDIO_PIPE;
    s->r.o.fds = s->pair;
    s->r.o.n_fds = 3;
    VOLT_AWAIT(s->rc, runner_run(cx, &s->r));
    CHECK_STR(s->r.out, "bb aa\n");
    for (int i = 0; i < 2; i++) volt_close(cx, s->a[i]), volt_close(cx, s->b[i]);
    VOLT_END(0);
}

// ---- the end

ROOT_TEST(process_end_sends_sigterm_then_sigkill, {
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    char text[40], c;
    int64_t rc;
    int i;
    volt_time start;
}) {
    static const char *const scripts[] = { "echo; exec sleep 100", "trap '' TERM; echo; sleep 100",
                                           "trap 'exit 5' TERM; echo; while :; do sleep 0.01; done",
                                           "echo; kill -STOP $$; sleep 100" };
    VOLT_BEGIN(cx, s);
    s->o.out = VOLT_STDIO_PIPE;
    s->o.is_group = s->o.ends_group = 1;
    for (s->i = 0; s->i < 4; s->i++) {
        s->o.argv = SH(scripts[s->i]);
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(s->rc, volt_read(cx, s->p.out, &s->c, 1)); // it is about to sleep
        s->start = volt_now();
        VOLT_AWAIT(s->rc, volt_process_end(cx, &s->p, s->i == 1 ? VOLT_MS(50) : VOLT_S(100),
                                           &s->end));
        CHECK_EQ(s->rc, 0);
        CHECK(volt_exit_text(&s->end, s->text, sizeof s->text) > 0);
        CHECK_STR(s->text, s->i == 1 ? "SIGKILL" : s->i == 2 ? "status 5" : "SIGTERM");
        CHECK_EQ(volt_process_signal(&s->p, SIGTERM), -ESRCH);
        VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
        CHECK_EQ(s->rc, -ECHILD);
        volt_process_close(cx, &s->p);
        CHECK_EQ(s->p.out, -1);
    }
    no_child_is_left();
    VOLT_END(0);
}
// The pipe of a group ends when its leader is collected, although a grandchild has it.
ROOT_TEST(process_end_ends_its_group, {
    volt_process p;
    volt_process_options o;
    char buf[4];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->o.out = VOLT_STDIO_PIPE;
    s->o.is_group = s->o.ends_group = 1;
    s->o.argv = SH("sleep 100 & echo; exit 0");
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_read_exact(cx, s->p.out, s->buf, 2));
    CHECK_EQ(s->rc, -EPIPE);
    volt_process_close(cx, &s->p);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_process *p;
    volt_exit_status end;
    volt_time grace;
} ender;
static volt_poll ender_run(volt_cx *cx, void *arg) {
    ender *e = (ender *)arg;
    VOLT_BEGIN(cx, e);
    int64_t rc;
    VOLT_AWAIT(rc, e->grace ? volt_process_end(cx, e->p, e->grace, &e->end)
                            : volt_process_wait(cx, e->p, &e->end));
    VOLT_END(rc < 0 ? rc : e->end.signal);
}
ROOT_TEST(cancelled_wait_leaves_the_process_and_cancelled_end_kills_it, {
    volt_process p;
    volt_process_options o;
    volt_handle h;
    char c;
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    s->o.out = VOLT_STDIO_PIPE;
    s->o.argv = SH("trap '' TERM; echo; exec sleep 100");
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    VOLT_AWAIT(s->rc, volt_read(cx, s->p.out, &s->c, 1));
    for (s->i = 0; s->i < 2; s->i++) {
        SPAWN(&s->h, ender_run, ((ender){ .p = &s->p, .grace = s->i ? VOLT_S(100) : 0 }));
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
        CHECK_EQ(volt_process_signal(&s->p, 0), 0); // it lives
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, s->i ? SIGKILL : -ECANCELED);
    }
    volt_process_close(cx, &s->p);
    no_child_is_left();
    VOLT_END(0);
}
// Where the kernel has no pidfd, the wait asks again and again.
ROOT_TEST_1(process_wait_works_without_pidfd, {
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    volt_timer limit;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->o.in = VOLT_STDIO_PIPE;
    s->o.argv = SH("read x; exit 7");
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    if (s->p.pidfd_ >= 0) volt_close(cx, s->p.pidfd_);
    s->p.pidfd_ = -1;
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(15),
                                  volt_process_wait(cx, &s->p, &s->end)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->p.in, "x\n", 2));
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->end.code, 7);
    volt_process_close(cx, &s->p);
    VOLT_END(0);
}
// Where another part of the program has collected the child, its number may be any process's.
ROOT_TEST_1(process_that_was_collected_by_others_gets_no_signal, {
    volt_process p;
    volt_process_options o;
    int64_t rc;
    int has_pidfd;
}) {
    VOLT_BEGIN(cx, s);
    for (s->has_pidfd = 0; s->has_pidfd < 2; s->has_pidfd++) {
        s->o.argv = SH("exit 3");
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, 0);
        if (!s->has_pidfd && s->p.pidfd_ >= 0) {
            volt_close(cx, s->p.pidfd_);
            s->p.pidfd_ = -1;
        }
        CHECK_EQ(waitpid(s->p.pid, NULL, 0), s->p.pid);
        n_kills = 0;
        CHECK_EQ(volt_process_signal(&s->p, SIGKILL), -ESRCH);
        CHECK_EQ(n_kills, 0);
        VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
        CHECK_EQ(s->rc, -ECHILD);
    }
    VOLT_END(0);
}
ROOT_TEST_1(process_is_signalled_where_a_filter_refuses_pidfds, {
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    int64_t rc;
    int i;
}) {
    static const int errors[] = { ENOSYS, EPERM, EINVAL };
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        s->o.argv = SH("exec sleep 100");
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, 0);
        refused_with = errors[s->i];
        VOLT_AWAIT(s->rc, volt_process_end(cx, &s->p, 0, &s->end));
        refused_with = 0;
        CHECK(s->rc == 0 && s->end.signal == SIGKILL);
    }
    VOLT_END(0);
}
// A process that another thread forks meanwhile has all descriptors of this one, and keeps them.
static int has_real_vfork(void) {
    static volatile int is_shared;
    pid_t pid = vfork();
    if (pid == 0) {
        is_shared = 1;
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    return is_shared;
}
typedef struct {
    volt_frame frame;
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    int64_t rc;
} starter;
static volt_poll starter_run(volt_cx *cx, void *arg) {
    starter *s = (starter *)arg;
    VOLT_BEGIN(cx, s);
    s->o.argv = SH("exit 3");
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
    CHECK(s->rc == 0 && s->end.code == 3);
    close(release_fd);
    CHECK(waitpid(-1, NULL, 0) > 0); // the keeper
    no_child_is_left();
    VOLT_END(0);
}
TEST(process_start_ends_although_a_forked_process_keeps_its_pipe) {
    starter s;
    memset(&s, 0, sizeof s);
    if (!has_real_vfork()) SKIP("vfork is a fork here");
    keeps = 1;
    CHECK_EQ(run_on(1, starter_run, &s), 0);
}
// As in emulators, where vfork is a fork: the error of the exec comes through the pipe.
ROOT_TEST_1(child_with_memory_of_its_own_reports_its_error, {
    volt_process p;
    volt_process_options o;
    int64_t rc;
}) {
    static const char *const none[] = { "no-such-program", NULL };
    VOLT_BEGIN(cx, s);
    by_fork = 1;
    s->o.argv = none;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, -ENOENT);
    no_child_is_left();
    s->o.argv = SH("exit 0");
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
enum { PROCESSES = 60 };
typedef struct {
    volt_frame frame;
    runner r;
    int64_t rc;
    char text[40];
    const char *argv[4];
    int n;
} numbered;
static volt_poll numbered_run(volt_cx *cx, void *arg) {
    numbered *n = (numbered *)arg;
    VOLT_BEGIN(cx, n);
    snprintf(n->text, sizeof n->text, "echo %d; exit %d", n->n, n->n);
    n->argv[0] = "sh", n->argv[1] = "-c", n->argv[2] = n->text;
    n->r.o.argv = n->argv;
    n->r.o.out = VOLT_STDIO_PIPE;
    VOLT_AWAIT(n->rc, runner_run(cx, &n->r));
    CHECK_EQ(n->rc, 0);
    CHECK_EQ(atoi(n->r.out), n->n);
    CHECK_EQ(n->r.end.code, n->n);
    VOLT_END(0);
}
ROOT_TEST_ALL(many_processes_end_without_a_zombie, {
    volt_group g;
    int64_t rc;
    int before;
}) {
    VOLT_BEGIN(cx, s);
    s->before = count_fds();
    for (int i = 0; i < PROCESSES; i++) GROUP_SPAWN(&s->g, numbered_run, ((numbered){ .n = i }));
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(count_fds(), s->before);
    no_child_is_left();
    VOLT_END(0);
}
TEST(exit_status_is_written_as_text) {
    static const struct {
        volt_exit_status e;
        const char *text;
    } cases[] = { { { 0, 0, 0 }, "status 0" }, { { 255, 0, 0 }, "status 255" },
                  { { -1, SIGSEGV, 1 }, "SIGSEGV, core dumped" }, { { -1, SIGTERM, 0 }, "SIGTERM" },
                  { { -1, 40, 0 }, "signal 40" } };
    char text[40];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int n = (int)strlen(cases[i].text);
        CHECK_EQ(volt_exit_text(&cases[i].e, text, sizeof text), n);
        CHECK_STR(text, cases[i].text);
        CHECK_EQ(volt_exit_text(&cases[i].e, text, (size_t)n), -ENOSPC);
    }
}

// ---- adopted, captured

ROOT_TEST(process_of_another_library_is_adopted, {
    volt_process p;
    volt_exit_status end;
    int64_t rc;
    int pid;
}) {
    VOLT_BEGIN(cx, s);
    s->pid = fork();
    if (s->pid == 0) _exit(9);
    CHECK_EQ(volt_process_adopt(&s->p, 1), -ECHILD);
    CHECK_EQ(volt_process_adopt(&s->p, 0), -EINVAL);
    CHECK_EQ(volt_process_adopt(&s->p, s->pid), 0);
    CHECK_EQ(volt_process_adopt(&s->p, s->pid), -EBUSY);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->end.code, 9);
    no_child_is_left();
    VOLT_END(0);
}
enum { INPUT = 300000 };
typedef struct {
    volt_frame frame;
    volt_capture c;
    volt_process_options o;
    int64_t rc;
} capturer;
static volt_poll capturer_run(volt_cx *cx, void *arg) {
    capturer *k = (capturer *)arg;
    VOLT_BEGIN(cx, k);
    VOLT_AWAIT(k->rc, volt_capture_run(cx, &k->c, &k->o));
    VOLT_END(k->rc);
}
ROOT_TEST_ALL(capture_keeps_output_status_and_bounds, {
    capturer k;
    char *in, *out, err[64];
    volt_handle h;
    int64_t rc;
    int before;
}) {
    VOLT_BEGIN(cx, s);
    s->k.o.argv = SH("exit 0");
    VOLT_AWAIT(s->rc, capturer_run(cx, &s->k)); // no room: no output, no error
    CHECK_EQ(s->rc, 0);
    s->before = count_fds();
    s->in = (char *)malloc(INPUT);
    s->out = (char *)malloc(INPUT);
    for (int i = 0; i < INPUT; i++) s->in[i] = (char)(i * 7);
    s->k.c = (volt_capture){ .input = s->in, .n_input = INPUT, .out = s->out, .out_cap = INPUT,
                             .err = s->err, .err_cap = sizeof s->err };
    s->k.o.argv = SH("cat; echo late >&2; exit 4"); // exactly full
    VOLT_AWAIT(s->rc, capturer_run(cx, &s->k));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->k.c.n_out, INPUT);
    CHECK_EQ(memcmp(s->in, s->out, INPUT), 0);
    CHECK(s->k.c.n_err == 5 && memcmp(s->err, "late\n", 5) == 0);
    CHECK_EQ(s->k.c.end.code, 4);
    s->k.c.out_cap = INPUT - 1; // one byte too few
    s->k.o.argv = SH("trap '' TERM; cat; sleep 100");
    s->k.c.grace = VOLT_MS(1);
    VOLT_AWAIT(s->rc, capturer_run(cx, &s->k));
    CHECK_EQ(s->rc, -EMSGSIZE);
    CHECK_EQ(s->k.c.end.signal, SIGKILL);
    s->k.c.out_cap = INPUT;
    s->k.o.argv = SH("exit 1"); // reads nothing
    VOLT_AWAIT(s->rc, capturer_run(cx, &s->k));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->k.c.end.code, 1);
    s->k.c.n_input = 0; // the grandchild has the pipe, and is ended
    s->k.o.argv = SH("sleep 100 & echo x");
    VOLT_AWAIT(s->rc, capturer_run(cx, &s->k));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->k.c.n_out, 2);
    s->k.o.argv = SH("sleep 100");
    SPAWN(&s->h, capturer_run, ((capturer){ .o = s->k.o, .c.grace = VOLT_MS(1) }));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(20)));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK_EQ(count_fds(), s->before);
    no_child_is_left();
    free(s->in);
    free(s->out);
    VOLT_END(0);
}

// Threads send a signal while processes begin and end: to each process or to none.
typedef struct {
    volt_frame frame;
    volt_process p;
    volt_process_options o;
    int is_over, i, n_sent; // atomic, but for i
    int64_t rc;
} signalled;
static void *send_signals(void *arg) {
    signalled *s = (signalled *)arg;
    while (!READ(s->is_over)) {
        int rc = volt_process_signal(&s->p, 0);
        CHECK(rc == 0 || rc == -ESRCH);
        if (rc == 0) COUNT(s->n_sent);
    }
    return NULL;
}
static volt_poll signalled_run(volt_cx *cx, void *arg) {
    signalled *s = (signalled *)arg;
    VOLT_BEGIN(cx, s);
    s->o.argv = SH("exit 0");
    for (s->i = 0; s->i < 20 || READ(s->n_sent) == 0; s->i++) {
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
        CHECK_EQ(s->rc, 0);
        if (s->i % 2) VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
        else VOLT_AWAIT(s->rc, volt_process_end(cx, &s->p, 0, NULL));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_END(0);
}
TEST_OF_THREADS(process_is_signalled_by_threads_beside_its_start_and_end) {
    signalled s;
    pthread_t threads[2];
    memset(&s, 0, sizeof s);
    for (int i = 0; i < 2; i++) threads[i] = start_thread(send_signals, &s);
    CHECK_EQ(run_on(2, signalled_run, &s), 0);
    WRITE(s.is_over, 1);
    for (int i = 0; i < 2; i++) join_thread(threads[i]);
}

// ---- signals

typedef struct {
    volt_frame frame;
    int fd, i;
    volt_signal_info info;
    volt_timer limit;
    int64_t rc;
} signal_state;
static volt_poll take_signals(volt_cx *cx, void *arg) {
    signal_state *s = (signal_state *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(2),
                                  volt_signals_next(cx, s->fd, &s->info)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    kill(getpid(), SIGHUP);
    VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd, &s->info));
    CHECK_EQ(s->rc, SIGHUP);
    CHECK_EQ(s->info.number, SIGHUP);
    CHECK_EQ(s->info.pid, getpid());
    CHECK_EQ(s->info.uid, getuid());
    for (s->i = 0; s->i < 3; s->i++) { // real-time signals are queued
        union sigval value = { .sival_int = s->i };
        CHECK_EQ(sigqueue(getpid(), SIGRTMIN, value), 0);
    }
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd, &s->info));
        CHECK_EQ(s->rc, SIGRTMIN);
        CHECK_EQ(s->info.value, s->i);
        CHECK_EQ(s->info.code, SI_QUEUE);
    }
    siginfo_t forged; // a process may tell itself what it likes
    memset(&forged, 0, sizeof forged);
    forged.si_signo = SIGRTMIN;
    forged.si_code = SI_QUEUE;
    forged.si_pid = 4321;
    forged.si_uid = 8765;
    CHECK_EQ(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN, &forged), 0);
    VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd, &s->info));
    CHECK(s->info.pid == 4321 && s->info.uid == 8765);
    union sigval value = { .sival_ptr = s };
    CHECK_EQ(sigqueue(getpid(), SIGRTMIN, value), 0);
    VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd, &s->info));
    CHECK(s->info.pointer == s);
    volt_close(cx, s->fd);
    VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd, NULL));
    CHECK(s->rc < 0);
    VOLT_END(0);
}
TEST(signals_are_received_as_messages) {
    EACH_WORKERS(w) {
        signal_state s;
        memset(&s, 0, sizeof s);
        s.fd = volt_signals_open((const int[]){ SIGHUP, SIGRTMIN }, 2);
        CHECK(s.fd >= 0);
        CHECK_EQ(run_on(w, take_signals, &s), 0);
    }
}
// A write to a pipe without a reader sends SIGPIPE to its thread, where it stays pending.
typedef struct {
    volt_frame frame;
    int fd, pipe[2];
    int64_t rc;
} broken_pipe;
static volt_poll break_a_pipe(volt_cx *cx, void *arg) {
    broken_pipe *s = (broken_pipe *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_pipe(s->pipe), 0);
    volt_close(cx, s->pipe[0]);
    VOLT_AWAIT(s->rc, volt_write(cx, s->pipe[1], "x", 1));
    CHECK_EQ(s->rc, -EPIPE);
    volt_close(cx, s->pipe[1]);
    kill(getpid(), SIGTERM); // of a higher number than SIGPIPE, which would be read first
    VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd, NULL));
    CHECK_EQ(s->rc, SIGTERM);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int fd;
    uint32_t i;
    pid_t other;
    volt_handle h;
    volt_signal_info info;
    int64_t rc;
} pipe_breaker;
static volt_poll break_pipes_on_all_workers(volt_cx *cx, void *arg) {
    pipe_breaker *s = (pipe_breaker *)arg;
    VOLT_BEGIN(cx, s);
    UNTIL(volt__started(cx->rt_) == cx->rt_->n_workers);
    for (s->i = 0; s->i < cx->rt_->n_workers; s->i++) {
        volt_spawn_options o = { .is_bound = 1, .worker = s->i };
        broken_pipe state = { .fd = s->fd };
        CHECK_EQ(volt_spawn_with(cx, &o, &s->h, break_a_pipe, &state, sizeof state, "pipe"), 0);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, 0);
    }
    CHECK_EQ(sigqueue(getpid(), SIGPIPE, (union sigval){ .sival_int = 5 }), 0); // not by a pipe
    VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd, &s->info));
    CHECK_EQ(s->rc, SIGPIPE);
    s->other = fork();
    if (s->other == 0) _exit(kill(getppid(), SIGPIPE));
    VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd, &s->info));
    CHECK_EQ(s->rc, SIGPIPE);
    CHECK_EQ(s->info.pid, s->other);
    CHECK_EQ(waitpid(s->other, NULL, 0), s->other);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
TEST(broken_pipe_of_the_program_is_no_signal_to_it) {
    EACH_WORKERS(w) {
        pipe_breaker s;
        memset(&s, 0, sizeof s);
        s.fd = volt_signals_open((const int[]){ SIGTERM, SIGPIPE }, 2);
        CHECK(s.fd >= 0);
        volt_config c = test_config(w);
        c.start_all_workers = 1;
        CHECK_EQ(volt_run(&c, break_pipes_on_all_workers, &s), 0);
        test_check_heap();
    }
}
ROOT_TEST_1(signals_of_another_file_are_refused, {
    int fd[2];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_pipe(s->fd), 0);
    CHECK_EQ(write(s->fd[1], "abc", 3), 3);
    VOLT_AWAIT(s->rc, volt_signals_next(cx, s->fd[0], NULL));
    CHECK_EQ(s->rc, -EINVAL);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
TEST(signals_that_cannot_be_received_are_refused) {
    static const int bad[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
                               SIGABRT, 0, -1, 4000 };
    sigset_t before, after;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(volt_signals_open((const int[]){ SIGTERM, bad[i] }, 2), -EINVAL);
    CHECK_EQ(volt_signals_open(NULL, 0), -EINVAL);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    CHECK_EQ(memcmp(&before, &after, sizeof before), 0);
}
