// SPDX-License-Identifier: MIT OR 0BSD
// Scheduler rows by oneTBB: task_group in a task_arena of N, in which this thread is one worker.
//
//   tbb_sched [ROW...] [--workers N] [--reps N]    default: all rows, 1 worker, 9 repetitions
//
//   S1    200 tasks at a time, by run(); a task cannot yield: the root calls wait(), and runs tasks
//         in it
//   S2    10,000 tasks at a time, and wait()
//   S6    each task spawns the next, 1000 deep, in one group
//   S10   skynet: one group; an inner node is a counter, and the last of its ten children carries
//         the sum up. No task waits for another one
//   S10j  skynet: each inner node has a group, and waits for it
//
// A worker takes the newest task of its own first, so that in S10 few exist at a time.
#include "bench.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

constexpr std::uint64_t million = 1000000;

struct in_arena : bench::workload {
    tbb::global_control limit; // more workers than processors, if that many are asked for
    tbb::task_arena arena;

    explicit in_arena(unsigned workers)
        : limit(tbb::global_control::max_allowed_parallelism, workers),
          arena(static_cast<int>(workers)) {
        arena.initialize();
    }
    virtual void root() = 0;
    double repeat() override {
        arena.execute([this] { root(); });
        return bench::by_the_clock;
    }
};

template <std::uint32_t at_once>
struct batches : in_arena {
    explicit batches(unsigned workers) : in_arena(workers) { ops = million; }
    void root() override {
        tbb::task_group group;
        for (std::uint64_t i = 0; i < million / at_once; i++) {
            for (std::uint32_t k = 0; k < at_once; k++) group.run([] { bench::tally_add(1); });
            group.wait();
        }
    }
};

struct s6 : in_arena {
    static constexpr std::uint32_t depth = 1000, times = 1000;

    explicit s6(unsigned workers) : in_arena(workers) { ops = depth * times; }
    static void link(tbb::task_group &group, std::uint32_t deeper) {
        group.run([&group, deeper] {
            bench::tally_add(1);
            if (deeper) link(group, deeper - 1);
        });
    }
    void root() override {
        tbb::task_group group;
        for (std::uint32_t i = 0; i < times; i++) {
            link(group, depth - 1);
            group.wait();
        }
    }
};

struct skynet : in_arena {
    std::uint64_t sum = 0;

    explicit skynet(unsigned workers) : in_arena(workers) { ops = million; }
    double repeat() override {
        in_arena::repeat();
        if (sum != million * (million - 1) / 2) bench::die("S10: a wrong sum");
        return bench::by_the_clock;
    }
};

struct s10 : skynet {
    using skynet::skynet;
    struct node {
        node *parent;
        std::atomic<std::uint32_t> left{10};
        std::atomic<std::uint64_t> sum{0};
    };
    void give(node *to, std::uint64_t value) {
        while (to) {
            to->sum.fetch_add(value, std::memory_order_relaxed);
            if (to->left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
            value = to->sum.load(std::memory_order_relaxed);
            delete std::exchange(to, to->parent);
        }
        sum = value;
    }
    void grow(tbb::task_group &group, node *parent, std::uint64_t first, std::uint64_t leaves) {
        if (leaves == 1) {
            bench::tally_add(1);
            return give(parent, first);
        }
        node *inner = new node{parent};
        for (std::uint64_t k = 0; k < 10; k++)
            group.run([=, this, &group] {
                grow(group, inner, first + k * leaves / 10, leaves / 10);
            });
    }
    void root() override {
        tbb::task_group group;
        sum = 0;
        grow(group, nullptr, 0, million);
        group.wait();
    }
};

struct s10j : skynet {
    using skynet::skynet;
    static std::uint64_t grow(std::uint64_t first, std::uint64_t leaves) {
        if (leaves == 1) {
            bench::tally_add(1);
            return first;
        }
        std::uint64_t sums[10], total = 0;
        tbb::task_group children;
        for (std::uint64_t k = 0; k < 10; k++)
            children.run([=, &sums] { sums[k] = grow(first + k * leaves / 10, leaves / 10); });
        children.wait();
        for (const auto s : sums) total += s;
        return total;
    }
    void root() override { sum = grow(0, million); }
};

const bench::row rows[] = {
    {"S1", "run, 200 at a time; the root waits in the group", bench::make<batches<200>>},
    {"S2", "run, 10,000 at a time; the root waits in the group", bench::make<batches<10000>>},
    {"S6", "chained run, depth 1000", bench::make<s6>},
    {"S10", "skynet: one group, counters in place of joins", bench::make<s10>},
    {"S10j", "skynet: a group for each inner node", bench::make<s10j>},
};

int main(int argc, char **argv) { return bench::main(argc, argv, rows); }
