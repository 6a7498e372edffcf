// SPDX-License-Identifier: MIT OR 0BSD
// The tests of the queues once more, with rings of other sizes: the least there can be, or one in
// between. Those of test_queues are 256 and, in the small build, 4.
#undef VOLT_RING_CAP
#ifdef VOLT_TEST_SMALL
#  define VOLT_RING_CAP 8
// Few indices, so that they come back often. The stress test waits for the steals under way before;
// in other tests a thief that the system stops for long would meet a head that has come back.
#  undef VOLT_RING_INDEX_BITS
#  define VOLT_RING_INDEX_BITS 5
#else
#  define VOLT_RING_CAP 2
#endif
#include "queues.c"
