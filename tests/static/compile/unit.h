// SPDX-License-Identifier: MIT OR 0BSD
// The interface between the units of these programs; see programs.sh. UNIT is the name of a unit: a
// function that runs a small program of tasks on a runtime of its own, and returns 0 on success.
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
