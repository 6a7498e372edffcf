// SPDX-License-Identifier: MIT OR 0BSD
// Common to the rows by Asio: an io_context with its threads, and the shape of a repetition.
#pragma once

#include "bench.hpp"

#include <thread>

#include <asio.hpp>

// The hint 1 lets a handler that is posted by the only thread go to the queue of that thread,
// without the lock; posts from outside stay legal.
struct runtime {
    asio::io_context io;
    asio::executor_work_guard<asio::io_context::executor_type> guard{io.get_executor()};
    std::vector<std::thread> threads;

    explicit runtime(unsigned workers) : io(static_cast<int>(workers)) {
        for (unsigned i = 0; i < workers; i++) threads.emplace_back([this] { io.run(); });
    }
    ~runtime() {
        guard.reset();
        for (auto &t : threads) t.join();
    }
};

// A root on a worker: a handler that is posted again each time that it has something to wait for.
struct rooted : bench::workload {
    runtime rt;
    bench::event ended;

    explicit rooted(unsigned workers) : rt(workers) {}
    virtual void root() = 0; // calls ended.set() when all is done
    double repeat() override {
        wake_root();
        ended.wait();
        return bench::by_the_clock;
    }
    void wake_root() {
        asio::post(rt.io, [this] { root(); });
    }
};

// The root spawns n tasks, the last of which to end wakes it; and so on.
struct batches : rooted {
    const std::uint32_t n, times;
    std::uint32_t round = 0;
    std::atomic<std::uint32_t> left{0};

    batches(unsigned workers, std::uint32_t n_, std::uint32_t times_)
        : rooted(workers), n(n_), times(times_) {}
    virtual void spawn(std::uint32_t k) = 0; // each hits at its end
    void hit() {
        if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_root();
    }
    void root() override {
        if (round == times) {
            round = 0;
            return ended.set();
        }
        round++;
        left.store(n, std::memory_order_release);
        for (std::uint32_t k = 0; k < n; k++) spawn(k);
    }
};
