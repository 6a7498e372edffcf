// SPDX-License-Identifier: MIT OR 0BSD
// The bursts of the rows N7s and N7r, as the clients and the servers in C have them: datagrams of
// one size, which the kernel joins and takes apart. Each begins with its number, counted over all
// bursts; the rest of it is the same in all.
#ifndef BENCH_BURSTS_H
#define BENCH_BURSTS_H

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#  define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#  define UDP_GRO 104
#endif

enum { BURST_DATAGRAMS = 32, BURST_DATAGRAM = 1200 };
enum { BURST_BYTES = BURST_DATAGRAMS * BURST_DATAGRAM, BURST_FILL = 0x5a };
enum { BURST_BUFFERS = 1 << 20 }; // bytes, of each socket: several bursts that wait to be read

// Sets the numbers of burst number n, in a buffer that burst_clear has filled.
static inline void burst_number(char *burst, uint64_t n) {
    for (uint64_t i = 0; i < BURST_DATAGRAMS; i++) {
        const uint64_t number = n * BURST_DATAGRAMS + i;
        memcpy(burst + i * BURST_DATAGRAM, &number, sizeof number);
    }
}

static inline void burst_clear(char *burst) { memset(burst, BURST_FILL, BURST_BYTES); }

// The receiver of bursts answers each one with what it has received so far.
typedef struct burst_receipt {
    uint64_t datagrams, sum; // sum: of their numbers
} burst_receipt;

// The receipt for burst number n, if no datagram was lost.
static inline burst_receipt burst_expected(uint64_t n) {
    const uint64_t datagrams = (n + 1) * BURST_DATAGRAMS;
    return (burst_receipt){ datagrams, datagrams / 2 * (datagrams - 1) }; // an even number
}

// Adds the datagrams of `segment` bytes each in one receive.  returns: 1 if that ends a burst, of
// which each receive has at most one
static inline int burst_add(burst_receipt *so_far, const char *in, size_t n, size_t segment) {
    const uint64_t before = so_far->datagrams / BURST_DATAGRAMS;
    for (size_t at = 0; segment >= sizeof(uint64_t) && at + sizeof(uint64_t) <= n; at += segment) {
        uint64_t number;
        memcpy(&number, in + at, sizeof number);
        so_far->sum += number;
        so_far->datagrams++;
    }
    return so_far->datagrams / BURST_DATAGRAMS > before;
}

static inline int burst_set(int fd, int option, int value) {
    return setsockopt(fd, IPPROTO_UDP, option, &value, sizeof value);
}

static inline void burst_buffers(int fd) {
    const int n = BURST_BUFFERS;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof n); // as far as the system allows
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n, sizeof n);
}

#endif // BENCH_BURSTS_H
