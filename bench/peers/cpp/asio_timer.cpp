// SPDX-License-Identifier: MIT OR 0BSD
// Timer rows by standalone Asio: steady_timer, armed by async_wait, whose handler always runs: an
// operation of T1 and T3b has ended when the handler of the wait that it cancelled has run.
//
//   asio_timer [ROW...] [--workers N] [--reps N]   default: all rows, 1 worker, 9 repetitions
//
//   T1a  100 tasks, 10,000 timeouts of 1 s each over what is ready at once. A handler has to arm
//        its timer before it starts the operation: the same as T1b
//   T1b  a wait of 1 s that is armed and cancelled at once
//   T1c  a timeout of 1 s over a post to the queue (a yield), whose handler cancels it
//   T1aco T1cco   T1a and T1c by coroutines, 1,000 times: operation || timer, of
//        awaitable_operators; with several workers each task has a strand
//   T2   1,000,000 tasks sleep 10 s: a handler each, posted, that arms its timer. Wall time over
//        the 10 s, and all CPU, per task; no warm-up, 1 repetition
//   T3a  1,000,000 timers with deadlines spread over 0..999 ms: made, armed, fired, closed
//   T3b  1,000,000 live timers, an hour away: each operation cancels one and arms it again
//   T4a T4b T4c   1,000 tasks sleep 100 us, 1 ms, 15 ms, 50 (c: 20) times each. The wall figure of
//        a repetition is the 99th percentile of lateness in ns; cpu is per sleep
//
// For the other columns see bench.hpp.
#include "asio.hpp"

#include <asio/experimental/awaitable_operators.hpp>

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using asio::awaitable;
using asio::steady_timer;
using asio::use_awaitable;
using clk = steady_timer::clock_type;
using nanoseconds = std::chrono::nanoseconds;

constexpr std::uint64_t million = 1000000;
constexpr std::uint32_t tasks = 100, each = 10000;

// ---- T1, by handlers

template <bool yields>
struct t1 : batches {
    struct task {
        t1 &all;
        steady_timer timer;
        std::uint32_t i = 0;
        std::atomic<std::uint32_t> left{0}; // parts of this operation

        explicit task(t1 &t) : all(t), timer(t.rt.io) {}
        void operation() {
            if (i++ == each) return all.hit();
            left.store(2, std::memory_order_relaxed);
            timer.expires_after(1s);
            timer.async_wait(
                [this](std::error_code e) { part(e == asio::error::operation_aborted); });
            if constexpr (yields) asio::post(all.rt.io, [this] { cancel(); });
            else cancel();
        }
        void cancel() {
            timer.cancel();
            part(true);
        }
        // The next operation starts when cancel() has returned and the handler has run, maybe by
        // another worker: a timer is for one thread at a time.
        void part(bool is_good) {
            if (!is_good) bench::die("a timer has fired");
            if (left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
            bench::tally_add(1);
            operation();
        }
    };
    std::vector<std::unique_ptr<task>> all;

    explicit t1(unsigned workers) : batches(workers, tasks, 1) {
        ops = tasks * each;
        for (std::uint32_t k = 0; k < tasks; k++) all.push_back(std::make_unique<task>(*this));
    }
    void spawn(std::uint32_t k) override {
        task *t = all[k].get();
        t->i = 0;
        asio::post(rt.io, [t] { t->operation(); });
    }
};

// ---- T1, by coroutines

template <bool yields>
struct t1co : batches {
    static constexpr std::uint32_t each = 1000;
    const bool is_alone;

    explicit t1co(unsigned workers) : batches(workers, tasks, 1), is_alone(workers == 1) {
        ops = tasks * each;
    }
    awaitable<int> operation() {
        const auto executor = co_await asio::this_coro::executor;
        if constexpr (yields) co_await asio::post(executor, use_awaitable);
        co_return 1;
    }
    awaitable<void> task() {
        steady_timer timer(co_await asio::this_coro::executor);
        for (std::uint32_t i = 0; i < each; i++) {
            timer.expires_after(1s);
            auto first = co_await (operation() || timer.async_wait(use_awaitable));
            if (first.index() == 0) bench::tally_add(1);
        }
        hit();
    }
    void spawn(std::uint32_t) override {
        if (is_alone) asio::co_spawn(rt.io, task(), asio::detached);
        else asio::co_spawn(asio::make_strand(rt.io), task(), asio::detached);
    }
};

// ---- T2

struct t2 : batches {
    explicit t2(unsigned workers) : batches(workers, million, 1) { ops = million; }
    void spawn(std::uint32_t) override {
        asio::post(rt.io, [this] {
            auto timer = std::make_unique<steady_timer>(rt.io, 10s);
            auto &armed = *timer; // the handler owns it
            armed.async_wait([this, t = std::move(timer)](std::error_code e) {
                if (!e && clk::now() >= t->expiry()) bench::tally_add(1);
                hit();
            });
        });
    }
    double repeat() override {
        const auto start = bench::now();
        batches::repeat();
        return static_cast<double>(bench::now() - start - 10000000000) / static_cast<double>(ops);
    }
};

// ---- T3

class numbers { // pseudo-random: the same ones in each repetition
    std::uint64_t x = 88172645463325252;

public:
    std::uint64_t next() {
        x ^= x << 13;
        x ^= x >> 7;
        return x ^= x << 17;
    }
};

struct t3a : rooted {
    std::vector<steady_timer> timers;
    std::atomic<std::uint64_t> left{0};

    explicit t3a(unsigned workers) : rooted(workers) {
        ops = million;
        timers.reserve(million);
    }
    void arm(clk::time_point deadline) {
        timers.emplace_back(rt.io, deadline).async_wait([this, deadline](std::error_code e) {
            if (!e && clk::now() >= deadline) bench::tally_add(1);
            if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_root();
        });
    }
    void root() override {
        if (!timers.empty()) {
            timers.clear();
            return ended.set();
        }
        numbers random;
        left.store(million);
        const auto start = clk::now();
        for (std::uint64_t i = 0; i < million; i++) arm(start + random.next() % 1000 * 1ms);
    }
};

struct t3b : rooted {
    static constexpr std::uint64_t at_once = 1000; // then it lets the handlers run
    numbers random;
    std::vector<steady_timer> timers;
    std::uint64_t n_armed = million, target = 0;

    explicit t3b(unsigned workers) : rooted(workers) {
        ops = million;
        for (std::uint64_t i = 0; i < million; i++) arm(timers.emplace_back(rt.io));
    }
    ~t3b() override { rt.io.stop(); } // the million handlers need not run
    void arm(steady_timer &t) {
        t.expires_after(1h + random.next() % 3600000 * 1ms);
        t.async_wait(
            [](std::error_code e) { bench::tally_add(e == asio::error::operation_aborted); });
    }
    double repeat() override {
        n_armed = 0;
        target = bench::tally_sum() + ops;
        return rooted::repeat();
    }
    void root() override {
        if (n_armed == million) {
            if (bench::tally_sum() == target) return ended.set();
        } else {
            for (std::uint64_t i = 0; i < at_once; i++) arm(timers[random.next() % million]);
            n_armed += at_once;
        }
        wake_root();
    }
};

// ---- T4

template <std::int64_t us, std::uint32_t sleeps>
struct t4 : batches {
    std::vector<steady_timer> timers;
    std::vector<std::int64_t> late;

    explicit t4(unsigned workers) : batches(workers, 1000, 1) {
        ops = n * sleeps;
        for (std::uint32_t k = 0; k < n; k++) timers.emplace_back(rt.io);
        late.resize(ops);
    }
    void sleep(std::uint32_t k, std::uint32_t i) {
        if (i == sleeps) return hit();
        const auto deadline = clk::now() + us * 1us;
        timers[k].expires_at(deadline);
        timers[k].async_wait([=, this](std::error_code e) {
            if (e) bench::die("a sleep has failed");
            late[k * sleeps + i] = nanoseconds(clk::now() - deadline).count();
            bench::tally_add(late[k * sleeps + i] >= 0);
            sleep(k, i + 1);
        });
    }
    void spawn(std::uint32_t k) override {
        asio::post(rt.io, [this, k] { sleep(k, 0); });
    }
    double repeat() override {
        batches::repeat();
        return bench::quantile(late, 0.99);
    }
};

// ---- main

const bench::row rows[] = {
    {"T1a", "timeout over what is ready: armed first, as T1b", bench::make<t1<false>>},
    {"T1b", "async_wait armed and cancelled", bench::make<t1<false>>},
    {"T1c", "timeout over a post: arm, requeue, cancel", bench::make<t1<true>>},
    {"T1aco", "timeout over a ready coroutine: operator ||", bench::make<t1co<false>>},
    {"T1cco", "timeout over an awaited post: operator ||", bench::make<t1co<true>>},
    {"T2", "1,000,000 tasks sleep 10 s: wall over that, cpu", bench::make<t2>, true},
    {"T3a", "timers of 0..999 ms: armed, fired, closed", bench::make<t3a>},
    {"T3b", "re-arm one of 1,000,000 timers", bench::make<t3b>},
    {"T4a", "p99 of lateness, 1,000 sleepers of 100 us", bench::make<t4<100, 50>>},
    {"T4b", "p99 of lateness, 1,000 sleepers of 1 ms", bench::make<t4<1000, 50>>},
    {"T4c", "p99 of lateness, 1,000 sleepers of 15 ms", bench::make<t4<15000, 20>>},
};

int main(int argc, char **argv) { return bench::main(argc, argv, rows); }
