// SPDX-License-Identifier: MIT OR 0BSD
// Work from threads that are not workers, by standalone Asio.
//
//   asio_outside [ROW...] [--workers N] [--reps N]   default: all rows, 1 worker, 9 repetitions
//
//   S3                     the workers are idle; a thread posts 10,000 tasks and keeps the future
//                          of each (use_future), then waits for all of them; 20 times
//   S5p1 S5p2 S5p4 S5p8    1, 2, 4, 8 threads post 12,800 empty tasks in total; 20 times. Wall time
//                          from the first post until a thread that waits for all goes on, without
//                          the time between two rounds
#include "asio.hpp"

#include <barrier>

constexpr std::uint32_t rounds = 20;

struct s3 : bench::workload {
    static constexpr std::uint32_t n = 10000;
    runtime rt;
    std::vector<std::future<void>> handles{n};

    explicit s3(unsigned workers) : rt(workers) { ops = n * rounds; }
    double repeat() override {
        for (std::uint32_t i = 0; i < rounds; i++) {
            for (auto &h : handles)
                h = asio::post(rt.io, asio::use_future([] { bench::tally_add(1); }));
            for (auto &h : handles) h.get();
        }
        return bench::by_the_clock;
    }
};

template <unsigned n_threads>
struct s5 : bench::workload {
    static constexpr std::uint32_t n = 12800;
    runtime rt;
    std::atomic<bool> is_over{false};
    std::atomic<std::uint32_t> left{0};
    std::atomic<std::int64_t> first{0};
    bench::event ended;
    std::barrier<> start{n_threads + 1};
    std::vector<std::thread> threads;

    explicit s5(unsigned workers) : rt(workers) {
        ops = n * rounds;
        for (unsigned i = 0; i < n_threads; i++) threads.emplace_back([this] { share(); });
    }
    ~s5() override {
        is_over = true;
        start.arrive_and_wait();
        for (auto &t : threads) t.join();
    }
    void share() {
        for (;;) {
            start.arrive_and_wait();
            if (is_over) return;
            note_first(bench::now());
            for (std::uint32_t k = 0; k < n / n_threads; k++) asio::post(rt.io, [this] { task(); });
        }
    }
    void note_first(std::int64_t mine) {
        std::int64_t seen = first;
        while (mine < seen && !first.compare_exchange_weak(seen, mine)) {}
    }
    void task() {
        bench::tally_add(1);
        if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) ended.set();
    }
    double repeat() override {
        std::int64_t wall = 0;
        for (std::uint32_t i = 0; i < rounds; i++) {
            first = INT64_MAX;
            left = n;
            start.arrive_and_wait();
            ended.wait();
            wall += bench::now() - first;
        }
        return static_cast<double>(wall) / static_cast<double>(ops);
    }
};

const bench::row rows[] = {
    {"S3", "spawn from a thread, wait for all: use_future", bench::make<s3>},
    {"S5p1", "spawn from 1 thread: post", bench::make<s5<1>>},
    {"S5p2", "spawn from 2 threads: post", bench::make<s5<2>>},
    {"S5p4", "spawn from 4 threads: post", bench::make<s5<4>>},
    {"S5p8", "spawn from 8 threads: post", bench::make<s5<8>>},
};

int main(int argc, char **argv) { return bench::main(argc, argv, rows); }
