// SPDX-License-Identifier: MIT OR 0BSD
// Shared by the programs of this directory. Each contains one misuse of volt.h and, under FIXED,
// the right form of the same lines; see run.sh.
#include "../../../volt.h"

typedef struct conn {
    volt_frame frame;
    volt_arm in, late;
    volt_timer timer;
    volt_handle handle;
    volt_group group;
    int fd, rc, i;
    int64_t n;
    char buf[64];
} conn;

// The function that the file defines.
volt_poll misuse(volt_cx *cx, conn *c);
// A task, and a child that takes its state by type.
volt_poll run(volt_cx *cx, void *state);
volt_poll child(volt_cx *cx, conn *c);
// Plain functions.
int compute(int x);
void use(const void *p);
