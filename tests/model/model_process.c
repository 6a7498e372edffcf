// SPDX-License-Identifier: MIT OR 0BSD
// Child processes, against the calls that any thread may make: a signal is sent while the number is
// the child's, and not after its end was collected. The state of a terminal [Y1]: it is put back
// once, as it was saved.
#include "vmc.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
static int model_kill(int pid, int number);
static int model_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
static int model_tcgetattr(int fd, struct termios *t);
static int model_tcsetattr(int fd, int when, const struct termios *t);
#undef vmc_sys_kill
#undef vmc_sys_waitid
#undef vmc_sys_tcgetattr
#undef vmc_sys_tcsetattr
#define vmc_sys_kill model_kill
#define vmc_sys_waitid model_waitid
#define vmc_sys_tcgetattr model_tcgetattr
#define vmc_sys_tcsetattr model_tcsetattr
#define VOLT_IMPLEMENTATION
#include "volt.h"

enum { PID = 77, GONE = 2 };
static uint32_t child; // atomic: 0 it runs, 1 it has ended, GONE
static volt_process process;

// The number belongs to another process as soon as the child is collected.
static int model_kill(int pid, int number) {
    VMC_ASSERT((pid == PID || pid == -PID) && (number == SIGTERM || number == SIGKILL));
    VMC_ASSERT(__atomic_load_n(&child, __ATOMIC_RELAXED) != GONE);
    return 0;
}
static int model_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    VMC_ASSERT(type == P_PID && id == PID && options & WNOHANG);
    VMC_ASSERT(__atomic_load_n(&child, __ATOMIC_RELAXED) != GONE);
    info->si_pid = PID;
    info->si_code = CLD_EXITED;
    if (!(options & WNOWAIT)) __atomic_store_n(&child, GONE, __ATOMIC_RELAXED);
    return 0;
}
static void send_signal(void *rc) { *(int *)rc = volt_process_signal(&process, SIGTERM); }
static void end_beside_signals(int n, int ends_group) {
    static int rc[2];
    int t[2];
    volt_exit_status end;
    volt__process_args args = { &process, &end };
    vmc_must_happen("before the end");
    vmc_must_happen("after the end");
    process.pid = PID;
    process.pidfd_ = -1; // by its number
    process.state_ = VOLT__PROCESS_RUNS;
    process.ends_group_ = (uint8_t)ends_group;
    child = 1;
    for (int i = 0; i < n; i++) t[i] = vmc_spawn(send_signal, &rc[i]);
    VMC_ASSERT(volt__process_collect(-1, &args) == 0 && end.code == 0 && end.signal == 0);
    for (int i = 0; i < n; i++) {
        vmc_join(t[i]);
        VMC_ASSERT(rc[i] == 0 || rc[i] == -ESRCH);
        vmc_reached(rc[i] == 0 ? "before the end" : "after the end");
    }
    VMC_ASSERT(process.state_ == VOLT__PROCESS_COLLECTED && child == GONE);
}
SCENARIO(process_signal_end, .class = VMC_EXHAUSTIVE) { end_beside_signals(1, 0); }
SCENARIO(process_signal_end_of_group, .class = VMC_EXHAUSTIVE) { end_beside_signals(1, 1); }
SCENARIO(process_two_signals_end) { end_beside_signals(2, 0); }

// ---- a terminal

static volt_tty terminal;
static uint32_t n_sets; // atomic
static int model_tcgetattr(int fd, struct termios *t) {
    (void)fd;
    memset(t, 0, sizeof *t);
    t->c_lflag = ECHO;
    return 0;
}
static int model_tcsetattr(int fd, int when, const struct termios *t) {
    VMC_ASSERT(fd == 5 && when == TCSAFLUSH);
    if (t->c_lflag != ECHO) return 0; // raw
    __atomic_fetch_add(&n_sets, 1, __ATOMIC_RELAXED);
    return 0;
}
static void put_back(void *arg) {
    (void)arg;
    volt_tty_restore(&terminal);
}
// The thread that makes it raw, and two that put it back: those see it whole, or not at all.
SCENARIO(tty_raw_restore, .class = VMC_EXHAUSTIVE) {
    int t = vmc_spawn(put_back, NULL);
    VMC_ASSERT(volt_tty_raw(&terminal, 5) == 0);
    int u = vmc_spawn(put_back, NULL);
    vmc_join(t);
    vmc_join(u);
    VMC_ASSERT(n_sets == 1 && terminal.is_raw_ == 0);
}
