// SPDX-License-Identifier: MIT OR 0BSD
// Signals that are sent at any moment, and children that end at any moment. Part of grammar.h.
//
// Checked
//   each signal that became pending is received, once                 signals_run
//   a wait for one that ends early has taken none                     signals_run
//   a child that does not start is reported, with its error           process_started
//   each child is collected, with its status                          process_ended, sim_run
//   no signal is sent to the number of a child that was collected     sim_kill      (children.h)
//   the output of a child is read up to its end                       process_run
//   a capture has all of it, or says that it was too much             capture_settle
#ifndef VOLT_SIM_PROCESSES_H
#define VOLT_SIM_PROCESSES_H

#include "lines.h"

// ---- signals: each operation has a number of its own

static int next_signal;
typedef struct signal_source {
    int signal, n, is_done;
} signal_source;
typedef struct op_signals {
    volt_frame frame;
    volt_timer timer;
    volt_shield shield;
    signal_source source;
    volt_signal_info info;
    int fd, n_got, before;
    int64_t limit, rc;
} op_signals;
static void signal_sender(void *arg) {
    signal_source *s = (signal_source *)arg;
    for (int n = s->n; n > 0; n--) {
        if (sim_below(2)) sim_nap(1 + sim_below(400000));
        sim_raise(s->signal);
    }
    s->is_done = 1;
}
static int signals_open(op_signals *o) {
    if (next_signal == 29 || !may_start_thread()) return 0;
    o->source.signal = SIGRTMIN + next_signal++;
    o->source.n = 1 + (int)prog_below(6);
    o->fd = volt_signals_open(&o->source.signal, 1);
    if (o->fd < 0) SIM_CHECK(prog.may_fail);
    if (o->fd < 0) return 0;
    start_thread(signal_sender, &o->source);
    return 1;
}
static int signals_are_left(const op_signals *o) {
    return !o->source.is_done || o->n_got < kernel.n_raised[o->source.signal - 1];
}
static void signals_settle(op_signals *o, int id) {
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    else if (o->rc < 0) SIM_CHECK(o->rc == -ETIMEDOUT || prog.may_fail);
    if (o->rc < 0) return;
    SIM_CHECK(o->rc == o->source.signal && o->info.number == o->source.signal && o->info.pid == 77);
    SIM_CHECK(++o->n_got <= kernel.n_raised[o->source.signal - 1]);
}
// The thread uses the state of the task, which therefore waits for it.
static volt_poll signals_run(volt_cx *cx, op_signals *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!signals_open(o)) VOLT_RETURN(0);
    while (signals_are_left(o) && o->rc >= 0) {
        memset(&o->info, 0, sizeof o->info);
        // the last signal may have been received already when the thread notes its end
        o->limit = draw_limit();
        VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit,
                                      volt_signals_next(cx, o->fd, &o->info)));
        signals_settle(o, id);
        if (o->rc == -ETIMEDOUT) o->rc = 0;
    }
    volt_shield_begin(cx, &o->shield, VOLT_NEVER);
    while (!o->source.is_done) VOLT_AWAIT(volt_sleep(cx, VOLT_US(50)));
    volt_shield_end(cx, &o->shield);
    volt_close(cx, o->fd);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- children

typedef struct op_process {
    volt_frame frame;
    volt_process p;
    volt_process_options options;
    volt_exit_status status;
    volt_timer timer;
    const char *argv[3];
    int code, error, bytes, ignores, how, is_signalled, n_read, has_failed;
    int64_t limit, rc, n;
    char arg[64], buf[8];
} op_process;
enum { PROCESS_WAITS, PROCESS_ENDS, PROCESS_SIGNALS, N_PROCESS };
static void process_draw(op_process *o) {
    int ignores = (int)prog_below(2);
    o->code = (int)prog_below(256);
    o->error = prog_below(4) ? 0 : ENOENT;
    o->bytes = (int)prog_below(20);
    o->how = (int)prog_below(N_PROCESS);
    o->ignores = ignores;
    snprintf(o->arg, sizeof o->arg, "%d %d %d %d %d %d", (int)prog_below(1u << 20),
             (int)prog_below(1u << (4 + prog_below(18))), o->code, o->error, o->bytes, ignores);
    o->argv[0] = "child";
    o->argv[1] = o->arg;
    o->options.argv = o->argv;
    o->options.out = prog_below(2) ? VOLT_STDIO_PIPE : 0;
    o->options.is_group = o->options.ends_group = prog_below(2);
}
static int process_started(const op_process *o, int id) {
    if (o->rc == 0) SIM_CHECK(!o->error && o->p.pid >= SIM_FIRST_PID);
    if (o->rc == 0) return 1;
    SIM_CHECK(o->p.in == -1 && o->p.out == -1 && o->p.err == -1);
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    else SIM_CHECK(o->rc == -o->error || prog.may_fail || o->rc == -EAGAIN);
    return 0;
}
static void process_ended(const op_process *o) {
    const volt_exit_status *s = &o->status;
    sim__trace("child %d: gives %d, code %d, signal %d", o->p.pid, (int)o->rc, s->code, s->signal);
    if (o->rc != 0) sim_fail("the end of child %d: %d", o->p.pid, (int)o->rc);
    SIM_CHECK(!sim__child_at(o->p.pid));
    if (s->signal) SIM_CHECK(o->is_signalled && s->code == -1);
    else SIM_CHECK(s->code == o->code);
    if (s->signal == SIGTERM) SIM_CHECK(!o->ignores);
}
// Reads the output, to its end or until a limit, and waits for the child; ends it if that takes too
// long.
static volt_poll process_run(volt_cx *cx, op_process *o, int id) {
    VOLT_BEGIN(cx, o);
    process_draw(o);
    ask_pool(volt_cx_rt(cx));
    VOLT_AWAIT(o->rc, volt_process_start(cx, &o->p, &o->options));
    calls.pool[pool_of(volt_cx_rt(cx))].n_asked--;
    if (!process_started(o, id)) VOLT_RETURN(o->rc == -ECANCELED ? o->rc : 0);
    while (o->p.out >= 0) {
        VOLT_AWAIT(o->n, volt_read(cx, o->p.out, o->buf, sizeof o->buf));
        if (o->n <= 0) break;
        o->n_read += (int)o->n;
    }
    if (o->p.out >= 0 && o->n == 0 && kernel.cap > 20) SIM_CHECK(o->n_read == o->bytes);
    volt_process_close(cx, &o->p);
    o->rc = -ETIMEDOUT;
    if (o->how == PROCESS_SIGNALS) {
        o->is_signalled = 1;
        SIM_CHECK(volt_process_signal(&o->p, prog_below(2) ? SIGTERM : SIGKILL) == 0);
    }
    if (o->how != PROCESS_ENDS) {
        o->limit = draw_limit();
        VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit,
                                      volt_process_wait(cx, &o->p, &o->status)));
    }
    if (o->rc < 0) {
        if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
        else SIM_CHECK(o->rc == -ETIMEDOUT || prog.may_fail);
        o->n = o->rc;
        o->is_signalled = 1;
        o->limit = prog_below(3) ? 1000 + prog_below(1u << 20) : 0;
        VOLT_AWAIT(o->rc, volt_process_end(cx, &o->p, o->limit, &o->status));
    }
    process_ended(o);
    SIM_CHECK(volt_process_signal(&o->p, SIGKILL) == -ESRCH);
    VOLT_END(o->n == -ECANCELED ? o->n : 0);
}

// ---- the output of a child alone

typedef struct op_capture {
    volt_frame frame;
    volt_capture c;
    volt_process_options options;
    volt_timer timer;
    const char *argv[3];
    int code, error, bytes;
    int64_t limit, rc;
    char arg[64], out[16], err[4], input[40];
} op_capture;
static void capture_draw(op_capture *o) {
    o->code = (int)prog_below(256);
    o->error = prog_below(6) ? 0 : ENOENT;
    o->bytes = (int)prog_below(20);
    snprintf(o->arg, sizeof o->arg, "%d %d %d %d %d %d", (int)prog_below(1u << 20),
             (int)prog_below(1u << (4 + prog_below(18))), o->code, o->error, o->bytes,
             (int)prog_below(2));
    o->argv[0] = "child";
    o->argv[1] = o->arg;
    o->options.argv = o->argv;
    o->options.err = prog_below(2) ? VOLT_STDIO_STDOUT : 0;
    o->c.input = o->input;
    o->c.n_input = prog_below(2) ? prog_below(sizeof o->input) : 0;
    memset(o->out, 'x', sizeof o->out);
    o->c.out = o->out;
    o->c.out_cap = prog_below(sizeof o->out + 1);
    o->c.err = prog_below(2) ? o->err : NULL;
    o->c.err_cap = prog_below(sizeof o->err);
    o->c.grace = prog_below(2) ? 1000 + prog_below(1u << 20) : 0;
    o->limit = prog_below(2) ? VOLT_NEVER : 1000 + prog_below(1u << 22);
}
// The child writes zeros at its start, as many as its pipe takes, and nothing to stderr.
static void capture_settle(op_capture *o, int id) {
    static const char zeros[sizeof o->out];
    size_t want = (size_t)o->bytes < kernel.cap ? (size_t)o->bytes : kernel.cap;
    sim__trace("capture of %d: gives %d, %d bytes, code %d, signal %d", o->c.process_.pid,
               (int)o->rc, (int)o->c.n_out, o->c.end.code, o->c.end.signal);
    SIM_CHECK(volt_process_signal(&o->c.process_, SIGKILL) == -ESRCH);
    SIM_CHECK(!sim__child_at(o->c.process_.pid));
    SIM_CHECK(o->c.n_out <= o->c.out_cap && o->c.n_err == 0);
    SIM_CHECK(memcmp(o->out, zeros, o->c.n_out) == 0);
    for (size_t i = o->c.n_out; i < sizeof o->out; i++) SIM_CHECK(o->out[i] == 'x');
    if (o->rc == 0) SIM_CHECK(o->c.n_out == want && !o->error);
    if (o->rc == 0) SIM_CHECK(o->c.end.code == o->code && o->c.end.signal == 0);
    if (o->rc == -EMSGSIZE) SIM_CHECK(want > o->c.out_cap && o->c.n_out == o->c.out_cap);
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    if (o->rc == -ETIMEDOUT) SIM_CHECK(o->limit != VOLT_NEVER);
    SIM_CHECK(o->rc == 0 || o->rc == -EMSGSIZE || o->rc == -ECANCELED || o->rc == -ETIMEDOUT ||
              o->rc == -o->error || prog.may_fail);
}
static volt_poll capture_run(volt_cx *cx, op_capture *o, int id) {
    VOLT_BEGIN(cx, o);
    capture_draw(o);
    ask_pool(volt_cx_rt(cx));
    VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit,
                                  volt_capture_run(cx, &o->c, &o->options)));
    calls.pool[pool_of(volt_cx_rt(cx))].n_asked--;
    capture_settle(o, id);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

#endif // VOLT_SIM_PROCESSES_H
