// SPDX-License-Identifier: MIT OR 0BSD
// Scheduler rows by standalone Asio.
//
//   asio_sched [ROW...] [--workers N] [--reps N]   default: all rows, 1 worker, 9 repetitions
//
// A task is a handler: post() puts it into the queue of the io_context, where all workers see it at
// once. The last step of a handler, to go on later or to have others go on, is a defer(): these
// handlers come to the common queue when it has returned, which spares locks and wakes. That is
// quicker than a coroutine in every row. The rows whose name ends in "co" are the same by C++20
// coroutines (awaitable), which stand nearer to a task that may wait anywhere.
//
//   S1 S1co        200 tasks at a time; the root posts itself (yields) until these have run
//   S2             10,000 tasks at a time; the last one to run wakes the root
//   S6             each task spawns the next, 1000 deep, by defer
//   S8 S8co        200 tasks yield 1000 times each, by defer
//   S9a S9b S9c    1, as many as workers, 200 pairs of tasks, two channels of capacity 1 each:
//                  experimental::channel at one worker, concurrent_channel else. A send tries
//                  first, as it mostly can, and waits else. S9aco: always async_send, awaited
//   S10            skynet: an inner node is a counter, and the last of its ten children, which are
//                  spawned by defer, carries the sum up; no handler waits for another one
#include "asio.hpp"

#include <asio/experimental/channel.hpp>
#include <asio/experimental/concurrent_channel.hpp>

using asio::awaitable;
using asio::use_awaitable;

constexpr std::uint64_t million = 1000000;

// ---- S1

awaitable<void> empty() {
    bench::tally_add(1);
    co_return;
}

template <bool coroutine>
struct s1 : rooted {
    static constexpr std::uint32_t at_once = 200;
    std::uint64_t target = 0, end = 0;

    explicit s1(unsigned workers) : rooted(workers) { ops = million; }
    double repeat() override {
        target = bench::tally_sum();
        end = target + ops;
        return rooted::repeat();
    }
    void spawn() {
        if constexpr (coroutine) asio::co_spawn(rt.io, empty(), asio::detached);
        else asio::post(rt.io, [] { bench::tally_add(1); });
    }
    void root() override {
        if (bench::tally_sum() >= target) {
            if (target == end) return ended.set();
            for (std::uint32_t k = 0; k < at_once; k++) spawn();
            target += at_once;
        }
        wake_root();
    }
};

// ---- S2

struct s2 : batches {
    explicit s2(unsigned workers) : batches(workers, 10000, 100) { ops = n * times; }
    void spawn(std::uint32_t) override {
        asio::post(rt.io, [this] {
            bench::tally_add(1);
            hit();
        });
    }
};

// ---- S6

struct s6 : batches {
    static constexpr std::uint32_t depth = 1000;

    explicit s6(unsigned workers) : batches(workers, 1, 1000) { ops = times * depth; }
    void link(std::uint32_t deeper) {
        asio::defer(rt.io, [this, deeper] {
            bench::tally_add(1);
            if (deeper) link(deeper - 1);
            else hit();
        });
    }
    void spawn(std::uint32_t) override { link(depth - 1); }
};

// ---- S8

constexpr std::uint32_t yields = 1000;

struct s8 : batches {
    explicit s8(unsigned workers) : batches(workers, 200, 5) { ops = n * times * yields; }
    void step(std::uint32_t left_to_yield) {
        asio::defer(rt.io, [this, left_to_yield] {
            if (left_to_yield) return step(left_to_yield - 1);
            bench::tally_add(yields);
            hit();
        });
    }
    void spawn(std::uint32_t) override { step(yields); }
};

struct s8co : batches {
    explicit s8co(unsigned workers) : batches(workers, 200, 5) { ops = n * times * yields; }
    awaitable<void> yielder() {
        std::uint32_t k = 0;
        for (; k < yields; k++) co_await asio::defer(rt.io, use_awaitable);
        bench::tally_add(k);
        hit();
    }
    void spawn(std::uint32_t) override { asio::co_spawn(rt.io, yielder(), asio::detached); }
};

// ---- S9

using message = void(std::error_code, std::uint64_t);
using local_channel = asio::experimental::channel<message>;
using shared_channel = asio::experimental::concurrent_channel<message>;

// Next runs at once if there is room, as the caller of an operation that need not wait goes on.
template <class Channel, class Next>
void send(Channel &channel, std::uint64_t value, Next next) {
    if (channel.try_send(std::error_code{}, value)) return next();
    channel.async_send(std::error_code{}, value, [next](std::error_code) { next(); });
}

template <class Channel>
struct meeting : batches {
    struct pair {
        meeting &all;
        Channel there, back;
        std::uint32_t trips = 0;

        explicit pair(meeting &m) : all(m), there(m.rt.io, 1), back(m.rt.io, 1) {}
        void ping() {
            if (trips == all.n_trips) {
                bench::tally_add(trips);
                return all.hit();
            }
            send(there, trips, [this] {
                back.async_receive([this](std::error_code, std::uint64_t answer) {
                    if (answer != trips + 1) bench::die("a wrong answer");
                    trips++;
                    ping();
                });
            });
        }
        void pong(std::uint32_t trips_left) {
            if (trips_left == 0) return all.hit();
            there.async_receive([this, trips_left](std::error_code, std::uint64_t value) {
                send(back, value + 1, [this, trips_left] { pong(trips_left - 1); });
            });
        }
    };
    const std::uint32_t n_trips;
    std::vector<std::unique_ptr<pair>> pairs;

    meeting(unsigned workers, std::uint32_t n_pairs, std::uint32_t n_trips_)
        : batches(workers, 2 * n_pairs, 1), n_trips(n_trips_) {
        ops = std::uint64_t{n_pairs} * n_trips;
        for (std::uint32_t k = 0; k < n_pairs; k++) pairs.push_back(std::make_unique<pair>(*this));
    }
    void spawn(std::uint32_t k) override {
        pair *p = pairs[k / 2].get();
        p->trips = 0;
        if (k % 2) asio::post(rt.io, [p] { p->ping(); });
        else asio::post(rt.io, [p, this] { p->pong(n_trips); });
    }
};

template <class Channel>
struct meeting_co : batches {
    static constexpr std::uint32_t n_trips = 200000;
    Channel there{rt.io, 1}, back{rt.io, 1};

    explicit meeting_co(unsigned workers) : batches(workers, 2, 1) { ops = n_trips; }
    awaitable<void> ping() {
        for (std::uint32_t k = 0; k < n_trips; k++) {
            co_await there.async_send(std::error_code{}, k, use_awaitable);
            if (co_await back.async_receive(use_awaitable) != k + 1) bench::die("a wrong answer");
            bench::tally_add(1);
        }
        hit();
    }
    awaitable<void> pong() {
        for (std::uint32_t k = 0; k < n_trips; k++) {
            const auto value = co_await there.async_receive(use_awaitable);
            co_await back.async_send(std::error_code{}, value + 1, use_awaitable);
        }
        hit();
    }
    void spawn(std::uint32_t k) override {
        asio::co_spawn(rt.io, k ? ping() : pong(), asio::detached);
    }
};

std::unique_ptr<bench::workload> meet(unsigned workers, unsigned n_pairs, unsigned n_trips) {
    if (workers == 1) return std::make_unique<meeting<local_channel>>(workers, n_pairs, n_trips);
    return std::make_unique<meeting<shared_channel>>(workers, n_pairs, n_trips);
}

std::unique_ptr<bench::workload> s9a(unsigned workers) { return meet(workers, 1, 200000); }
std::unique_ptr<bench::workload> s9b(unsigned workers) {
    return meet(workers, workers, 200000 / workers);
}
std::unique_ptr<bench::workload> s9c(unsigned workers) { return meet(workers, 200, 1000); }
std::unique_ptr<bench::workload> s9aco(unsigned workers) {
    if (workers == 1) return std::make_unique<meeting_co<local_channel>>(workers);
    return std::make_unique<meeting_co<shared_channel>>(workers);
}

// ---- S10

struct s10 : rooted {
    struct node {
        node *parent;
        std::atomic<std::uint32_t> left{10};
        std::atomic<std::uint64_t> sum{0};
    };
    std::uint64_t sum = 0;

    explicit s10(unsigned workers) : rooted(workers) { ops = million; }
    void give(node *to, std::uint64_t value) {
        while (to) {
            to->sum.fetch_add(value, std::memory_order_relaxed);
            if (to->left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
            value = to->sum.load(std::memory_order_relaxed);
            delete std::exchange(to, to->parent);
        }
        sum = value;
        ended.set();
    }
    void grow(node *parent, std::uint64_t first, std::uint64_t leaves) {
        if (leaves == 1) {
            bench::tally_add(1);
            return give(parent, first);
        }
        node *inner = new node{parent};
        for (std::uint64_t k = 0; k < 10; k++)
            asio::defer(rt.io, [=, this] { grow(inner, first + k * leaves / 10, leaves / 10); });
    }
    void root() override { grow(nullptr, 0, million); }
    double repeat() override {
        rooted::repeat();
        if (sum != million * (million - 1) / 2) bench::die("S10: a wrong sum");
        return bench::by_the_clock;
    }
};

// ---- main

const bench::row rows[] = {
    {"S1", "spawn, 200 at a time: post", bench::make<s1<false>>},
    {"S1co", "spawn, 200 at a time: co_spawn", bench::make<s1<true>>},
    {"S2", "spawn, 10,000 at a time: post", bench::make<s2>},
    {"S6", "chained spawn, depth 1000: defer", bench::make<s6>},
    {"S8", "yield, 200 tasks: handlers defer themselves", bench::make<s8>},
    {"S8co", "yield, 200 tasks: coroutines await a defer", bench::make<s8co>},
    {"S9a", "round trip, one pair: handlers, try_send", s9a},
    {"S9b", "round trip, a pair per worker: handlers, try_send", s9b},
    {"S9c", "round trip, 200 pairs: handlers, try_send", s9c},
    {"S9aco", "round trip, one pair: coroutines, async_send", s9aco},
    {"S10", "skynet: handlers, counters in place of joins", bench::make<s10>},
};

int main(int argc, char **argv) { return bench::main(argc, argv, rows); }
