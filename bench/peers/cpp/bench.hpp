// SPDX-License-Identifier: MIT OR 0BSD
// Common to the C++ peers: clocks, repetitions, one line of figures per row, options.
//
// A row is a workload of a fixed number of operations that is repeated in one process. Its line:
//   row      its name                     workers  threads that run tasks
//   min, median  wall time of a repetition / operations in it, in ns: the fastest, and the median
//   cpu      user and system time of all threads / operations, in ns: the median
//   wakes    how often a thread gave its processor up / operations: in the median repetition
//   ops      operations in one repetition
// With BENCH_JSON set in the environment, a line of JSON with the same figures follows.
// Every operation is counted where it happens; a wrong sum ends the program.
#pragma once

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <time.h>

namespace bench {

template <class... Args>
[[noreturn]] void die(const char *format, Args... args) {
    std::fprintf(stderr, format, args...);
    std::fputc('\n', stderr);
    std::exit(2);
}

// ---- clocks

inline std::int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

struct usage {
    std::int64_t wall, cpu, wakes;
};

inline std::int64_t timeval_ns(timeval t) {
    return std::int64_t{t.tv_sec} * 1000000000 + t.tv_usec * 1000;
}

inline usage used() {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return {now(), timeval_ns(u.ru_utime) + timeval_ns(u.ru_stime), u.ru_nvcsw};
}

// ---- tally: operations done, summed over threads without a line that they share

struct alignas(128) tally_cell {
    std::atomic<std::uint64_t> n; // written by one thread only
};
inline tally_cell tally_cells[4096];
inline std::atomic<std::uint32_t> tally_used;
inline constinit thread_local tally_cell *tally_mine = nullptr;

[[gnu::noinline, gnu::cold]] inline void tally_register() {
    const auto i = tally_used.fetch_add(1);
    if (i >= std::size(tally_cells)) die("too many threads in one run: choose fewer rows");
    tally_mine = &tally_cells[i];
}

inline void tally_add(std::uint64_t n) {
    if (!tally_mine) tally_register();
    const auto sum = tally_mine->n.load(std::memory_order_relaxed) + n;
    tally_mine->n.store(sum, std::memory_order_release);
}

inline std::uint64_t tally_sum() {
    const auto n = std::min<std::size_t>(tally_used.load(), std::size(tally_cells));
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < n; i++) sum += tally_cells[i].n.load(std::memory_order_acquire);
    return sum;
}

// ---- an end for which a thread that is no worker waits, asleep

class event {
    std::atomic<std::uint32_t> is_set{0};

public:
    void set() {
        is_set.store(1, std::memory_order_release);
        is_set.notify_one();
    }
    void wait() { // and makes it ready for the next time
        is_set.wait(0, std::memory_order_acquire);
        is_set.store(0, std::memory_order_relaxed);
    }
};

// ---- figures that are a quantile: lateness of wakes

inline double quantile(std::vector<std::int64_t> &samples, double q) {
    const auto k = std::min(samples.size() - 1, static_cast<std::size_t>(
                                                    q * static_cast<double>(samples.size())));
    std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(k),
                     samples.end());
    return static_cast<double>(samples[k]);
}

// ---- rows

constexpr double by_the_clock = -1e300;

// The runtime starts with its constructor and ends with its destructor, neither of them timed.
struct workload {
    std::uint64_t ops = 0; // in one repetition, as the tally must find it
    virtual ~workload() = default;
    virtual double repeat() = 0; // gives the wall figure in ns per operation, or by_the_clock
};

struct row {
    const char *id, *what;
    std::unique_ptr<workload> (*make)(unsigned workers);
    bool once = false; // no warm-up, and one repetition if no number is given
};

template <class Workload>
std::unique_ptr<workload> make(unsigned workers) {
    return std::make_unique<Workload>(workers);
}

struct figures {
    std::vector<double> wall, cpu, wakes;
};

inline double median(std::vector<double> &x) {
    std::sort(x.begin(), x.end());
    const auto n = x.size();
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

inline void print_header() {
    std::printf("%-12s %7s %10s %10s %10s %10s %10s  %s\n", "row", "workers", "min ns", "median",
                "cpu", "wakes", "ops", "operation");
}

inline void print(const row &r, unsigned workers, std::uint64_t ops, figures &f) {
    const double wall = median(f.wall), cpu = median(f.cpu), wakes = median(f.wakes);
    std::printf("%-12s %7u %10.2f %10.2f %10.2f %10.4f %10" PRIu64 "  %s\n", r.id, workers,
                f.wall[0], wall, cpu, wakes, ops, r.what);
    if (std::getenv("BENCH_JSON"))
        std::printf("{\"row\":\"%s\",\"workers\":%u,\"wall_min_ns\":%.3f,\"wall_median_ns\":%.3f,"
                    "\"cpu_median_ns\":%.3f,\"wakes_per_op\":%.6f,\"ops\":%" PRIu64
                    ",\"repetitions\":%zu}\n",
                    r.id, workers, f.wall[0], wall, cpu, wakes, ops, f.wall.size());
    std::fflush(stdout);
}

inline void repeat(const row &r, workload &w, figures *f) {
    const auto ops = static_cast<double>(w.ops);
    const auto done = tally_sum();
    const usage a = used();
    const double wall = w.repeat();
    const usage b = used();
    if (tally_sum() - done != w.ops) die("%s: operations were lost or done twice", r.id);
    if (!f) return;
    f->wall.push_back(wall == by_the_clock ? static_cast<double>(b.wall - a.wall) / ops : wall);
    f->cpu.push_back(static_cast<double>(b.cpu - a.cpu) / ops);
    f->wakes.push_back(static_cast<double>(b.wakes - a.wakes) / ops);
}

inline void measure(const row &r, unsigned workers, int reps) {
    figures f;
    const auto w = r.make(workers);
    if (!r.once) repeat(r, *w, nullptr);
    if (reps == 0) reps = r.once ? 1 : 9;
    for (int i = 0; i < reps; i++) repeat(r, *w, &f);
    print(r, workers, w->ops, f);
}

// ---- command line: [ROW...] [--workers N] [--reps N], or --list, which names the rows

inline int number(const char *name, const char *text, long min, long max) {
    char *end = nullptr;
    const long value = text ? std::strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || value < min || value > max)
        die("%s: a number from %ld to %ld", name, min, max);
    return static_cast<int>(value);
}

inline int main(int argc, char **argv, std::span<const row> rows) {
    int workers = 1, reps = 0;
    std::vector<std::string> wanted;
    for (int i = 1; i < argc; i++) {
        const std::string arg = argv[i];
        if (arg == "--list") {
            for (const row &r : rows) std::puts(r.id);
            return 0;
        }
        if (arg == "--workers") workers = number("--workers", argv[++i], 1, 64);
        else if (arg == "--reps") reps = number("--reps", argv[++i], 1, 99);
        else if (arg[0] == '-') die("unknown option %s: --workers --reps --list", argv[i]);
        else wanted.push_back(arg);
    }
    for (const auto &id : wanted)
        if (std::none_of(rows.begin(), rows.end(), [&](const row &r) { return r.id == id; }))
            die("no such row: %s", id.c_str());
    print_header();
    for (const row &r : rows)
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), r.id) != wanted.end())
            measure(r, static_cast<unsigned>(workers), reps);
    return 0;
}

} // namespace bench
