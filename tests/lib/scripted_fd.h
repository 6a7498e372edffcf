// SPDX-License-Identifier: MIT OR 0BSD
// One descriptor of one worker of two, and nodes of one task that wait for it.
// Included by tests on the seam of scripted_seam.h, behind tests with variables of these names.
#ifndef VOLT_TEST_SCRIPTED_FD_H
#define VOLT_TEST_SCRIPTED_FD_H
static int fd[2];
static volt__fd *e;
static volt__task *task;
static volt__node node[3];
static __attribute__((unused)) void begin_fd(void) {
    memset(&ctl, 0, sizeof ctl);
    begin(2);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    e = volt__fd_lookup(&rt->fds, fd[0]);
    e->gen = 5;
    task = still_task(w);
    task->word &= ~VOLT__NOTIFIED; // it sleeps
    memset(node, 0, sizeof node);
    memset(&ctl, 0, sizeof ctl);
}
static __attribute__((unused)) void end_fd(void) {
    close(fd[0]);
    close(fd[1]);
    end();
}
#endif
