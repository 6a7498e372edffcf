// SPDX-License-Identifier: MIT OR 0BSD
// What the units of these programs give each other; see programs.sh. UNIT is the name of a unit:
// a function that runs a small program of tasks on a runtime of its own, and gives 0 if all went
// well.
#ifndef UNIT_H
#define UNIT_H
#ifdef __cplusplus
extern "C" {
#endif
#ifdef UNIT
__attribute__((visibility("default"))) int UNIT(void);
#endif
int first(void);
int second(void);
int third(void);
#ifdef __cplusplus
}
#endif
#endif
