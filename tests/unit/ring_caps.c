// SPDX-License-Identifier: MIT OR 0BSD
// The tests of the queues once more, with rings of other sizes: the least there can be, or one in
// between. Those of test_queues are 256 and, in the small build, 4.
#undef VOLT_RING_CAP
#ifdef VOLT_TEST_SMALL
#  define VOLT_RING_CAP 8
#else
#  define VOLT_RING_CAP 2
#endif
#include "queues.c"
