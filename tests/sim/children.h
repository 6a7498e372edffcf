// SPDX-License-Identifier: MIT OR 0BSD
// Signals and child processes of the simulated kernel. Part of kernel.h.
//
// A signal that is sent while it is pending is lost, as a standard signal is; every thread blocks
// it. A child is no thread but two events: its exec, which may fail, and its end. The argument
// after its name says when: "exec_ns end_ns status errno bytes ignores", see sim_start_child.
#ifndef VOLT_SIM_CHILDREN_H
#define VOLT_SIM_CHILDREN_H

// ---- signals

// Sends a signal to the process.
SIM_FN void sim_raise(int signal) {
    uint64_t bit = UINT64_C(1) << (signal - 1);
    sim_point();
    if (kernel.pending & bit) return;
    kernel.pending |= bit;
    kernel.n_raised[signal - 1]++;
    for (int i = 0; i < kernel.n_files; i++)
        if (kernel.files[i].kind == SIM_SIGNALS && (kernel.files[i].mask & bit))
            sim__wake_file(&kernel.files[i], EPOLLIN);
}
static int64_t sim__signals_read(const sim_file *f, void *buf, size_t len) {
    struct signalfd_siginfo info;
    uint64_t there = kernel.pending & f->mask;
    if (len < sizeof info) return sim__error(EINVAL);
    if (!there) return sim__error(EAGAIN);
    memset(&info, 0, sizeof info);
    info.ssi_signo = (uint32_t)__builtin_ctzll(there) + 1;
    info.ssi_pid = 77;
    kernel.pending &= ~(UINT64_C(1) << (info.ssi_signo - 1));
    memcpy(buf, &info, sizeof info);
    return sizeof info;
}
SIM_FN int sim_signalfd(int fd, const sigset_t *set, int flags) {
    sim_point();
    if (fd != -1) sim_fail("simulation: signalfd only for a new descriptor");
    sim_file *f = sim__file_open(SIM_SIGNALS);
    for (int i = 1; f && i < 64; i++)
        if (sigismember(set, i) == 1) f->mask |= UINT64_C(1) << (i - 1);
    if (f) f->flags = flags & SFD_NONBLOCK ? O_NONBLOCK : 0;
    return SIM__INT(signalfd, 0, sim__fd_install(f));
}

// ---- children

static sim_child *sim__child_at(int pid) {
    int i = pid - SIM_FIRST_PID;
    return i >= 0 && i < kernel.n_children && kernel.child[i].state ? &kernel.child[i] : NULL;
}
static int sim__child_pid(const sim_child *c) { return SIM_FIRST_PID + (int)(c - kernel.child); }
static void sim__child_drop(sim_file **f) {
    if (*f) sim__file_unref(*f);
    *f = NULL;
}
static void sim__child_ends(sim_child *c, int status, int signal) {
    if (c->state != SIM_CHILD_RUNS) return;
    c->state = SIM_CHILD_ENDED;
    c->status = status;
    c->signal = signal;
    sim__child_drop(&c->report);
    for (int i = 0; i < 3; i++) sim__child_drop(&c->stream[i]);
    for (int i = 0; i < kernel.n_files; i++)
        if (kernel.files[i].kind == SIM_PIDFD && kernel.files[i].path == sim__child_pid(c))
            sim__wake_file(&kernel.files[i], EPOLLIN);
    sim__wake_on(c, 1);
}
static void sim__child_end_comes(void *object, uint64_t status) {
    sim__child_ends(object, (int)status, 0);
}
static void sim__child_killed(void *object, uint64_t signal) {
    sim__child_ends(object, 0, (int)signal);
}
static void sim__child_execs(void *object, uint64_t end_in) {
    static const unsigned char bytes[SIM_BUFFER];
    sim_child *c = object;
    if (c->state != SIM_CHILD_RUNS) return;
    if (c->error) {
        sim__pass(c->report->peer, (const unsigned char *)&c->error, sizeof c->error);
        sim__child_ends(c, 127, 0);
        return;
    }
    sim__child_drop(&c->report);
    sim_file *out = c->stream[1];
    int64_t room = out && out->peer ? (int64_t)sim__free_room(out->peer) : 0;
    if (c->bytes > room) c->bytes = (int)room;
    if (c->bytes > 0) sim__pass(out->peer, bytes, (uint32_t)c->bytes);
    sim__at(sim.now + (int64_t)end_in, sim__child_end_comes, c, (uint64_t)c->status);
}
// fds: pairs of a descriptor here and one of the child. Returns the pid or -errno.
SIM_FN int sim_start_child(const char *arg, int report_fd, const int *fds, int n_fds) {
    long exec_in = 0, end_in = 0;
    sim_point();
    if (kernel.n_children == SIM_CHILDREN || sim_fault(SIM_THREAD)) return -EAGAIN;
    sim_child *c = &kernel.child[kernel.n_children++];
    memset(c, 0, sizeof *c);
    if (sscanf(arg, "%ld %ld %d %d %d %d", &exec_in, &end_in, &c->status, &c->error, &c->bytes,
               &c->ignores) != 6)
        sim_fail("simulation: the argument of a child");
    c->state = SIM_CHILD_RUNS;
    c->report = sim__file_at(report_fd);
    if (!c->report || !c->report->peer) sim_fail("simulation: the report of a child");
    c->report->refs++;
    if (c->report->peer->cap < sizeof c->error) c->report->peer->cap = sizeof c->error;
    c->report->peer->is_whole = 1;
    for (int i = 0; i < n_fds; i++) {
        if (fds[2 * i] < 0) continue; // closed
        sim_file *f = sim__file_at(fds[2 * i]);
        if (!f) sim_fail("a child gets a descriptor that is not open");
        if (fds[2 * i + 1] > 2 || !f) continue;
        c->stream[fds[2 * i + 1]] = f;
        f->refs++;
    }
    sim__at(sim.now + exec_in, sim__child_execs, c, (uint64_t)end_in);
    return sim__child_pid(c);
}
static void sim__child_info(const sim_child *c, siginfo_t *out) {
    memset(out, 0, sizeof *out);
    out->si_pid = sim__child_pid(c);
    out->si_code = c->signal ? CLD_KILLED : CLD_EXITED;
    out->si_status = c->signal ? c->signal : c->status;
}
SIM_FN int sim_waitid(idtype_t type, id_t id, siginfo_t *out, int flags) {
    sim_point();
    sim_child *c = sim__child_at((int)id);
    if (type != P_PID || !(flags & WNOHANG)) sim_fail("simulation: waitid of one, no wait");
    if (!c) return SIM__INT(waitid, (int)id, sim__error(ECHILD));
    memset(out, 0, sizeof *out);
    if (c->state == SIM_CHILD_ENDED) {
        sim__child_info(c, out);
        if (!(flags & WNOWAIT)) c->state = SIM_CHILD_NONE;
    }
    return SIM__INT(waitid, (int)id, 0);
}
SIM_FN int sim_waitpid(int pid, int *status, int flags) {
    sim_point();
    sim_child *c = sim__child_at(pid);
    if (status || flags) sim_fail("simulation: waitpid with a wait, without a status");
    if (!c) return SIM__INT(waitpid, pid, sim__error(ECHILD));
    while (c->state == SIM_CHILD_RUNS) sim__sleep("waitpid", c, SIM_NEVER);
    c->state = SIM_CHILD_NONE;
    return SIM__INT(waitpid, pid, pid);
}
static void sim__child_signalled(sim_child *c, int signal) {
    int is_deadly = signal == SIGKILL || (signal == SIGTERM && !c->ignores);
    if (is_deadly && c->state == SIM_CHILD_RUNS)
        sim__at(sim.now + sim_below(1u << 18), sim__child_killed, c, (uint64_t)signal);
}
// The number of a child that has been collected may be another process: a signal to it fails the
// run.
SIM_FN int sim_kill(int pid, int signal) {
    sim_point();
    sim_child *c = sim__child_at(pid < 0 ? -pid : pid);
    if (!c) sim_fail("signal %d to %d, which is no child", signal, pid);
    if (pid > 0 && c) sim__child_signalled(c, signal);
    return SIM__INT(kill, pid, 0);
}
static int sim__pidfd_open(int pid) {
    if (kernel.is_old) return sim__error(ENOSYS);
    if (!sim__child_at(pid)) return sim__error(ESRCH);
    sim_file *f = sim__file_open(SIM_PIDFD);
    if (f) f->path = pid;
    return sim__fd_install(f);
}
static int sim__pidfd_send(int fd, int signal) {
    sim_file *f = sim__file_of(fd, SIM_PIDFD);
    sim_child *c = f ? sim__child_at(f->path) : NULL;
    if (!c) return sim__error(f ? ESRCH : EBADF);
    sim__child_signalled(c, signal);
    return 0;
}
static uint32_t sim__pidfd_poll(const sim_file *f) {
    const sim_child *c = sim__child_at(f->path);
    return !c || c->state == SIM_CHILD_ENDED ? EPOLLIN : 0;
}

#endif // VOLT_SIM_CHILDREN_H
