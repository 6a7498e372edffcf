// SPDX-License-Identifier: MIT OR 0BSD
// The proxy of 01_proxy.c from C++17: each connection is relayed to another address, in both
// directions. The state of a task is a plain struct; what a connection owns is a C++ object behind
// a pointer, whose destructor closes the descriptors and counts the bytes.
//
//     c++ -std=c++17 -O2 -I. -pthread sketch/10_proxy.cpp -o proxy
//     ./proxy 127.0.0.1:7000 127.0.0.1:80
//
// SIGUSR1 prints the statistics; the bytes are those of connections that have ended. SIGTERM or
// SIGINT closes the listener and lets the connections end within `drain_time`; a SIGINT during that
// time cuts them.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <memory>
#include <new>
#include <sys/resource.h>
#include <utility>

namespace {

constexpr volt_time connect_time = VOLT_S(5), idle_time = VOLT_S(300), drain_time = VOLT_S(30);
constexpr rlim_t connections_max = 10000, connection_fds = 7; // two sockets, two pipes, a reserve

using byte_counters = std::array<std::atomic<std::uint64_t>, 2>; // client to target, and back

// Owns a descriptor of the runtime. A negative number, such as an error, is no descriptor.
class descriptor {
    volt_rt *rt_;
    int fd_;

  public:
    descriptor(volt_rt *rt, int fd) noexcept : rt_{ rt }, fd_{ fd } {}
    descriptor(descriptor &&other) noexcept
        : rt_{ other.rt_ }, fd_{ std::exchange(other.fd_, -1) } {}
    descriptor &operator=(descriptor &&other) noexcept {
        std::swap(rt_, other.rt_);
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~descriptor() {
        if (fd_ >= 0) volt_rt_close(rt_, fd_);
    }
    bool is_open() const noexcept { return fd_ >= 0; }
    int get() const noexcept { return fd_; }
    volt_stream stream() const noexcept { return volt_stream_of(fd_); }
    // The close that follows resets the connection.
    void reset_on_close() const noexcept {
        if (fd_ >= 0) volt_set_linger(fd_, 0);
    }
};

// The resources of a connection. It stays at one address: the relay is in use while it is awaited.
class session {
    byte_counters &bytes_;

  public:
    descriptor client, target;
    volt_relay_state relay{};

    session(byte_counters &bytes, volt_rt *rt, descriptor &&accepted) noexcept
        : bytes_{ bytes }, client{ std::move(accepted) }, target{ rt, -1 } {}
    session(const session &) = delete;
    session &operator=(const session &) = delete;
    ~session() {
        for (std::size_t i = 0; i < bytes_.size(); i++)
            bytes_[i].fetch_add(relay.way[i].n_copied, std::memory_order_relaxed);
    }
    // Both sides are reset, so that a cut stream does not look like a complete one.
    void fail() const noexcept {
        client.reset_on_close();
        target.reset_on_close();
    }
};

struct connection {
    volt_frame frame;
    volt_timer limit;
    const volt_addr *to;
    session *owned; // deleted by the task
    int rc;
};

volt_poll connection_run(volt_cx *cx, void *arg) noexcept {
    auto *const c = static_cast<connection *>(arg);
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, connect_time, volt_connect(cx, c->to)));
    if (c->rc >= 0) {
        c->owned->target = descriptor{ volt_cx_rt(cx), c->rc };
        VOLT_AWAIT(c->rc, volt_relay(cx, &c->owned->relay, c->owned->client.stream(),
                                     c->owned->target.stream(), idle_time, nullptr, 0));
    }
    if (c->rc < 0) c->owned->fail();
    delete c->owned;
    VOLT_END(0);
}

struct proxy {
    volt_frame frame{};
    volt_arm came{}, left{}, signalled{};
    volt_timer limit{};
    volt_group connections{};
    volt_addr target{};
    volt_time deadline = VOLT_NEVER; // of the drain
    std::uint64_t n_now = 0, n_max = 0, n_total = 0;
    byte_counters bytes{};
    int listener = -1, signals = -1, signal = 0, client = 0, rc = 0;

    bool is_accepting() const noexcept { return listener >= 0; }
    // Of the arms whose condition does not hold, none can win.
    volt_poll next_client(volt_cx *cx) const noexcept {
        return is_accepting() && n_now < n_max ? volt_accept(cx, listener) : volt_sleep_forever(cx);
    }
    volt_poll next_end(volt_cx *cx) noexcept {
        return n_now > 0 ? volt_group_next(cx, &connections, nullptr) : volt_sleep_forever(cx);
    }
    void stop_accepting(volt_cx *cx) noexcept {
        volt_close(cx, listener);
        listener = -1;
        deadline = volt_now() + drain_time;
    }
    void start_connection(volt_cx *cx) noexcept;
    void print() const noexcept;
};

void proxy::start_connection(volt_cx *cx) noexcept {
    descriptor accepted{ volt_cx_rt(cx), client };
    std::unique_ptr<session> owned{ new (std::nothrow)
                                        session{ bytes, volt_cx_rt(cx), std::move(accepted) } };
    if (!owned) return;
    if (VOLT_GROUP_SPAWN(cx, &connections, connection_run,
                         connection{ {}, {}, &target, owned.get(), 0 }) < 0)
        return;
    static_cast<void>(owned.release()); // the task may have deleted it already
    n_now++;
    n_total++;
}

void proxy::print() const noexcept {
    std::fprintf(stderr,
                 "connections: %" PRIu64 " now, %" PRIu64 " in total; bytes: %" PRIu64
                 " in, %" PRIu64 " out\n",
                 n_now, n_total, bytes[0].load(std::memory_order_relaxed),
                 bytes[1].load(std::memory_order_relaxed));
}

volt_poll proxy_run(volt_cx *cx, void *arg) noexcept {
    auto *const p = static_cast<proxy *>(arg);
    VOLT_BEGIN(cx, p);
    volt_group_collect(&p->connections);
    while (p->is_accepting() || p->n_now > 0) {
        VOLT_AWAIT(p->rc, volt_before(cx, &p->limit, p->deadline, VOLT_SELECT(
            VOLT_ARM(&p->came, p->client, p->next_client(cx)),
            VOLT_ARM(&p->left, p->next_end(cx)),
            VOLT_ARM(&p->signalled, p->signal, volt_signals_next(cx, p->signals, nullptr)))));
        if (p->rc < 0) break; // the time for the drain is up
        if (p->left.fired) p->n_now--;
        else if (p->came.fired && p->client >= 0) p->start_connection(cx);
        else if (p->signalled.fired && p->signal == SIGUSR1) p->print();
        else if (p->is_accepting()) p->stop_accepting(cx); // a signal, or accept has failed
        else if (p->signal < 0 || p->signal == SIGINT) break;
    }
    VOLT_AWAIT(volt_group_close(cx, &p->connections)); // cuts those that are left
    p->n_now = 0;
    volt_close(cx, p->signals);
    p->print();
    VOLT_END(p->client < 0 ? p->client : 0);
}

// Raises the limit of descriptors, whose default is too low.
rlim_t connections_allowed() noexcept {
    rlimit fds{};
    getrlimit(RLIMIT_NOFILE, &fds);
    fds.rlim_cur = fds.rlim_max;
    setrlimit(RLIMIT_NOFILE, &fds);
    return std::min(fds.rlim_max / connection_fds, connections_max);
}

} // namespace

int main(int argc, char **argv) {
    constexpr int signals[] = { SIGINT, SIGTERM, SIGUSR1 };
    proxy p;
    volt_addr at{};
    if (argc != 3 || volt_addr_parse(&at, argv[1]) < 0 || volt_addr_parse(&p.target, argv[2]) < 0) {
        std::fprintf(stderr, "usage: %s LISTEN_ADDR TARGET_ADDR\n", argv[0]);
        return 2;
    }
    volt_config config{};
    config.log.fn = volt_log_stderr;
    p.n_max = connections_allowed();
    p.signals = volt_signals_open(signals, static_cast<int>(std::size(signals)));
    p.listener = p.signals < 0 ? p.signals : volt_listen_addr(&at, nullptr);
    const int rc = p.listener < 0 ? p.listener : volt_run(&config, proxy_run, &p);
    if (rc < 0) std::fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
