// SPDX-License-Identifier: MIT OR 0BSD
// Which of the order mutants compiled into a model program is switched on: MUTANT in the
// environment, 0 for none. Compiled without the checker's hooks, so that asking leaves no trace.
#include <stdlib.h>

int volt_mutant_is(int number);
int volt_mutant_is(int number) {
    static int chosen = -1;
    if (chosen < 0) {
        const char *text = getenv("MUTANT");
        chosen = text ? atoi(text) : 0;
    }
    return number == chosen;
}
