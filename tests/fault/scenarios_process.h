// SPDX-License-Identifier: MIT OR 0BSD
// Scenarios with directories, cached reads, signals, child processes, serial lines and terminals.
#ifndef VOLT_FAULT_SCENARIOS_PROCESS_H
#define VOLT_FAULT_SCENARIOS_PROCESS_H

// ---- files and directories

// A directory in the memory of the system, where fsync is quick, and two files in it.
typedef struct paths {
    char dir[40], old[44], new[44];
} paths;
static void make_paths(paths *p) {
    snprintf(p->dir, sizeof p->dir, "/dev/shm/volt-fault-%d", (int)getpid());
    snprintf(p->old, sizeof p->old, "%s/old", p->dir);
    snprintf(p->new, sizeof p->new, "%s/new", p->dir);
}
// Removes both, whatever a failure has left of them.
static void remove_paths(const paths *p) {
    unlink(p->old);
    unlink(p->new);
    if (rmdir(p->dir) < 0) CHECK_EQ(errno, ENOENT); // else a file lies there that volt has made
}
STATE(directories, paths path; volt_file_op op; volt_dir_entry entry; struct stat st; int fd, n;
      size_t at; _Alignas(8) char entries[1024]; char in[16];) {
    VOLT_BEGIN(cx, s);
    make_paths(&s->path);
    remove_paths(&s->path); // a run that was killed has left them
    KEEP_AWAIT(volt_dir_make(cx, &s->op, s->path.dir, 0700));
    if (s->first < 0) VOLT_RETURN(s->first);
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, s->path.old, "first", 5, 0600));
    KEEP(unless_short(s->rc, 5));
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, s->path.old, "second", 6, 0600));
    KEEP(unless_short(s->rc, 6));
    if (s->first == 0)
        KEEP_AWAIT(volt_file_rename(cx, &s->op, s->path.old, s->path.new));
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, s->path.new, O_RDWR | O_APPEND, 0));
    KEEP(s->first < 0 && s->fd == -ENOENT ? 0 : s->fd);
    if (s->fd >= 0) {
        VOLT_AWAIT(s->rc, volt_file_append(cx, &s->op, s->fd, "hand", 4));
        KEEP(unless_short(s->rc, 4));
        KEEP_AWAIT(volt_file_truncate(cx, &s->op, s->fd, 8));
        KEEP_AWAIT(volt_file_fstat(cx, &s->op, s->fd, &s->st));
        if (s->first == 0) CHECK_EQ(s->st.st_size, 8);
        VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->in, sizeof s->in, 0));
        if (s->first == 0) KEEP(unless_short(s->rc, 8));
        if (s->first == 0) CHECK(memcmp(s->in, "secondha", 8) == 0);
        KEEP_AWAIT(volt_file_close(cx, &s->op, s->fd));
    }
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, s->path.dir, O_RDONLY | O_DIRECTORY, 0));
    KEEP(s->fd);
    while (s->fd >= 0) {
        KEEP_AWAIT(volt_dir_read(cx, &s->op, s->fd, s->entries, sizeof s->entries));
        if (s->rc <= 0) break;
        for (s->at = 0; volt_dir_next(s->entries, (size_t)s->rc, &s->at, &s->entry) == 1; s->n++)
            if (s->first == 0) CHECK(strcmp(s->entry.name, "new") == 0);
    }
    if (s->first == 0) CHECK_EQ(s->n, 1);
    if (s->fd >= 0) KEEP_AWAIT(volt_file_close(cx, &s->op, s->fd));
    if (s->first == 0) KEEP_AWAIT(volt_file_unlink(cx, &s->op, s->path.new));
    if (s->first == 0) KEEP_AWAIT(volt_dir_remove(cx, &s->op, s->path.dir));
    remove_paths(&s->path);
    VOLT_END(s->first);
}

// The pool has no thread yet. Without one the file is closed all the same.
STATE(closes_a_file_first, volt_file_op op; int fd;) {
    VOLT_BEGIN(cx, s);
    s->fd = opened(open("/dev/null", O_RDONLY), FD_STORED);
    if (s->fd < 0) VOLT_RETURN(-EMFILE);
    KEEP_AWAIT(volt_file_close(cx, &s->op, s->fd));
    if (KNOWN_DEFECTS && kind_of(s->fd) == FD_STORED) drop(s->fd);
    CHECK(kind_of(s->fd) != FD_STORED);
    VOLT_END(s->first);
}

// On a file system whose reads may be asked not to wait: the kernel has the data, or has a part.
STATE(reads_cached_data, volt_file_op op; int fd; char path[40];
      char out[FILE_LEN], in[FILE_LEN + 1];) {
    VOLT_BEGIN(cx, s);
    snprintf(s->path, sizeof s->path, "/tmp/volt-fault-%d-data", (int)getpid());
    for (int i = 0; i < FILE_LEN; i++) s->out[i] = (char)(i * 7);
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, s->path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    if (s->fd < 0) VOLT_RETURN(s->fd);
    CHECK_EQ(pwrite(s->fd, s->out, FILE_LEN, 0), FILE_LEN);
    VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->in, 50, 10));
    KEEP(unless_short(s->rc, 50));
    if (s->first == 0) CHECK(memcmp(s->in, s->out + 10, 50) == 0);
    VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->in, FILE_LEN + 1, 0));
    if (s->first == 0) KEEP(unless_short(s->rc, FILE_LEN));
    if (s->first == 0) CHECK(memcmp(s->in, s->out, FILE_LEN) == 0);
    KEEP_AWAIT(volt_file_close(cx, &s->op, s->fd));
    unlink(s->path);
    VOLT_END(s->first);
}

// ---- signals

// The signals are sent to this process while the task waits, and while it does not.
STATE(signal_waiter, int fd; volt_signal_info info; volt_timer timer;) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    KEEP_AWAIT(volt_signals_next(cx, s->fd, &s->info));
    if (s->first == 0) CHECK(s->rc == SIGUSR1 && s->info.pid == getpid());
    if (s->first == 0)
        KEEP_EXPECTED(-ETIMEDOUT, volt_within(cx, &s->timer, VOLT_MS(1),
                                              volt_signals_next(cx, s->fd, NULL)));
    CHECK_EQ(kill(getpid(), SIGUSR2), 0);
    if (s->first == 0) KEEP_AWAIT(volt_signals_next(cx, s->fd, NULL));
    if (s->first == 0) CHECK_EQ(s->rc, SIGUSR2);
    volt_close(cx, s->fd);
    VOLT_END(s->first);
}
static int signals(void) {
    static const int list[] = { SIGUSR1, SIGUSR2 };
    sigset_t before, now;
    signal_waiter_state s = { .rc = 0 };
    volt_config c = config(1);
    signal(SIGUSR1, SIG_IGN); // a run that fails leaves one pending
    signal(SIGUSR2, SIG_IGN);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    s.fd = volt_signals_open(list, 2);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    CHECK_EQ(sigismember(&now, SIGUSR1), s.fd >= 0 ? 1 : sigismember(&before, SIGUSR1));
    if (s.fd < 0) return s.fd;
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    int fd = s.fd, rc = volt_run(&c, signal_waiter_run, &s);
    if (kind_of(fd) == FD_SIGNAL) drop(fd); // no task has run
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    return rc;
}

// ---- child processes

// volt_process_end gives up if it cannot wait for the process.
static void mend_end(volt_cx *cx, volt_process *p) {
    if (!KNOWN_DEFECTS || p->state_ != VOLT__PROCESS_RUNS) return;
    steal_child(p->pid);
    if (p->pidfd_ >= 0) volt_close(cx, p->pidfd_);
    p->state_ = VOLT__PROCESS_NONE;
}
// Ends and collects the process, whatever a failure has left of it.
STATE(process_ender, volt_process *p; volt_exit_status end; volt_time grace;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_process_end(cx, s->p, s->grace, &s->end));
    if (!KNOWN_DEFECTS) CHECK(s->rc == 0 || s->rc == -ECHILD);
    mend_end(cx, s->p);
    CHECK_EQ(volt_process_signal(s->p, SIGTERM), -ESRCH);
    volt_process_close(cx, s->p);
    VOLT_END(s->rc);
}
// A child that finds no free descriptor cannot say so.
static int is_start_lost(void) {
    return KNOWN_DEFECTS && inject.f.effect == LIMIT && get(&inject.is_on);
}
// The child sends back its input.
STATE(runs_a_process, volt_process p; volt_process_options options; volt_exit_status end;
      process_ender_state ender; char in[8];) {
    static const char *const cat[] = { "cat", NULL };
    VOLT_BEGIN(cx, s);
    s->options.argv = cat;
    s->options.in = s->options.out = VOLT_STDIO_PIPE;
    s->options.err = VOLT_STDIO_NULL;
    if (is_start_lost()) VOLT_RETURN(0);
    KEEP_AWAIT(volt_process_start(cx, &s->p, &s->options));
    if (s->first < 0) CHECK(s->p.in == -1 && s->p.out == -1 && s->p.pid == 0);
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP_AWAIT(volt_write_all(cx, s->p.in, "hello", 5));
    if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->p.out, s->in, 5));
    if (s->first == 0) CHECK(memcmp(s->in, "hello", 5) == 0);
    volt_close(cx, s->p.in);
    s->p.in = -1;
    if (s->first == 0) KEEP_AWAIT(volt_process_wait(cx, &s->p, &s->end));
    if (s->first == 0) CHECK(s->end.code == 0 && s->end.signal == 0);
    s->ender.p = &s->p;
    VOLT_AWAIT(process_ender_run(cx, &s->ender));
    VOLT_END(s->first);
}
// The child reports that there is no such program.
STATE(refuses_a_process, volt_process p; volt_process_options options;) {
    static const char *const none[] = { "/no/such/program", NULL };
    VOLT_BEGIN(cx, s);
    s->options.argv = none;
    s->options.in = s->options.out = VOLT_STDIO_PIPE;
    s->options.err = VOLT_STDIO_STDOUT;
    if (is_start_lost()) VOLT_RETURN(0);
    KEEP_EXPECTED(-ENOENT, volt_process_start(cx, &s->p, &s->options));
    CHECK(s->p.in == -1 && s->p.out == -1 && s->p.pid == 0);
    CHECK_EQ(volt_process_signal(&s->p, SIGTERM), -ESRCH);
    VOLT_END(s->first);
}
// It ends by itself, if no signal can be sent. The last one is signalled by its number.
STATE(ends_a_process, volt_process p; volt_process_options options; process_ender_state ender;
      int i;) {
    static const char *const nap[] = { "sleep", "0.3", NULL };
    VOLT_BEGIN(cx, s);
    s->options.argv = nap;
    s->options.is_group = s->options.ends_group = 1;
    if (is_start_lost()) VOLT_RETURN(0);
    for (s->i = 0; s->i < 3; s->i++) {
        KEEP_AWAIT(volt_process_start(cx, &s->p, &s->options));
        if (s->rc < 0) break;
        if (s->i == 2 && s->p.pidfd_ >= 0) {
            volt_close(cx, s->p.pidfd_);
            s->p.pidfd_ = -1;
        }
        s->ender = (process_ender_state){ .p = &s->p, .grace = s->i == 1 ? VOLT_MS(20) : 0 };
        KEEP_AWAIT(process_ender_run(cx, &s->ender));
        if (!is_hit()) CHECK_EQ(s->ender.end.signal, s->i == 1 ? SIGTERM : SIGKILL);
    }
    VOLT_END(s->first);
}
STATE(captures, volt_capture capture; volt_process_options options; char out[40];) {
    static const char *const cat[] = { "cat", NULL };
    VOLT_BEGIN(cx, s);
    s->options.argv = cat;
    s->capture.input = "some text";
    s->capture.n_input = 9;
    s->capture.out = s->out;
    s->capture.out_cap = sizeof s->out;
    if (is_start_lost()) VOLT_RETURN(0);
    KEEP_AWAIT(volt_capture_run(cx, &s->capture, &s->options));
    mend_end(cx, &s->capture.process_);
    if (!is_hit()) CHECK(s->capture.end.code == 0);
    int may_be_cut = inject.f.effect == ZERO || inject.f.value == EPIPE; // it reads no more
    if (s->first == 0 && is_hit() && may_be_cut && s->capture.n_out < 9) KEEP(-EPIPE);
    if (s->first == 0) CHECK(s->capture.n_out == 9 && memcmp(s->out, "some text", 9) == 0);
    VOLT_END(s->first);
}

// ---- serial lines, terminals

// The master of a new pseudo-terminal, and the path of its other side. Negative: the error.
static int make_terminal(char *path, size_t cap) {
    int fd = opened(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), FD_DATA);
    if (fd < 0) return -errno;
    CHECK_EQ(grantpt(fd), 0);
    CHECK_EQ(unlockpt(fd), 0);
    CHECK_EQ(ptsname_r(fd, path, cap), 0);
    return fd;
}
STATE(serial_line, volt_serial_options options; volt_tty saved; int master, fd, n;
      char path[64], in[4];) {
    VOLT_BEGIN(cx, s);
    s->master = make_terminal(s->path, sizeof s->path);
    if (s->master < 0) VOLT_RETURN(s->master);
    s->options = (volt_serial_options){ .baud = 19200, .is_exclusive = 1 };
    s->fd = volt_serial_open(s->path, &s->options, &s->saved);
    KEEP(s->fd);
    s->n = inject.n[C_tcsetattr];
    if (s->fd < 0) volt_tty_restore(&s->saved); // there is nothing to restore
    if (s->fd < 0 && !KNOWN_DEFECTS) CHECK_EQ(inject.n[C_tcsetattr], s->n);
    if (s->fd >= 0) {
        KEEP_AWAIT(volt_write_all(cx, s->fd, "ab\n", 3));
        if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->master, s->in, 3));
        if (s->first == 0) CHECK(memcmp(s->in, "ab\n", 3) == 0); // as it is: without "\r"
        if (s->first == 0) KEEP_AWAIT(volt_write_all(cx, s->master, "c\n", 2));
        if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->fd, s->in, 2));
        volt_tty_restore(&s->saved);
        volt_close(cx, s->fd);
    }
    volt_close(cx, s->master);
    VOLT_END(s->first);
}
static int is_raw(int fd) {
    struct termios t;
    CHECK_EQ(tcgetattr(fd, &t), 0);
    return !(t.c_lflag & (tcflag_t)ICANON);
}
STATE(raw_terminal, volt_tty tty; int master, fd; char path[64];) {
    VOLT_BEGIN(cx, s);
    s->master = make_terminal(s->path, sizeof s->path);
    if (s->master < 0) VOLT_RETURN(s->master);
    s->fd = opened(open(s->path, O_RDWR | O_NOCTTY), FD_DATA);
    if (s->fd < 0) KEEP(-EMFILE);
    if (s->fd >= 0) {
        s->rc = volt_tty_raw(&s->tty, s->fd);
        CHECK_EQ(is_raw(s->fd), s->rc == 0);
        KEEP(s->rc);
        if (s->first == 0) KEEP_AWAIT(volt_write_all(cx, s->fd, "ab", 2));
        volt_tty_restore(&s->tty);
        if (!is_hit() || (!KNOWN_DEFECTS && inject.f.value == EINTR)) CHECK(!is_raw(s->fd));
        volt_close(cx, s->fd);
    }
    drop(s->master);
    VOLT_END(s->first);
}

#endif // VOLT_FAULT_SCENARIOS_PROCESS_H
