// SPDX-License-Identifier: MIT OR 0BSD
// The proxy of examples/08_proxy.c from C++17: each connection is relayed to another address, in
// both directions. The state of a task is a plain struct; what a connection owns is a C++ object
// behind a pointer, whose destructor closes the descriptors.
//
//     c++ -std=c++17 -O2 -I. -pthread examples/programs/proxy.cpp -o proxy
//     ./proxy 127.0.0.1:7000 127.0.0.1:80
//
// SIGUSR1 prints the statistics, with the bytes of connections that have ended. SIGTERM or SIGINT
// closes the listener; the connections are cut after `drain_time`, or by a second signal.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <sys/resource.h>
#include <utility>

namespace {

constexpr volt_time connect_time = VOLT_S(5), drain_time = VOLT_S(30);
constexpr int idle_seconds = 300;
constexpr rlim_t connections_max = 10000, connection_fds = 7; // two sockets, two pipes, a reserve

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
    ~descriptor() { reset(); }
    bool is_open() const noexcept { return fd_ >= 0; }
    int get() const noexcept { return fd_; }
    volt_stream stream() const noexcept { return volt_stream_of(fd_); }
    void reset() noexcept {
        if (fd_ >= 0) volt_rt_close(rt_, std::exchange(fd_, -1));
    }
    // The peer sees a reset in place of an end.
    void abort() noexcept {
        if (fd_ >= 0) volt_set_linger(fd_, 0);
        reset();
    }
};

// The resources of a connection. It stays at one address: the relay is in use while it is awaited.
struct session {
    descriptor client, target;
    volt_relayer relay{};

    session(volt_rt *rt, descriptor &&accepted) noexcept
        : client{ std::move(accepted) }, target{ rt, -1 } {}
    void begin(descriptor &&connected, volt_time idle) noexcept {
        target = std::move(connected);
        volt_relayer_init(&relay, client.stream(), target.stream(), idle);
    }
    std::uint64_t copied() const noexcept {
        return volt_copied(volt_relay_way(&relay, 0)) + volt_copied(volt_relay_way(&relay, 1));
    }
};

struct proxy;
struct connection {
    volt_frame frame;
    volt_timer limit;
    const proxy *owner;
    session *owned; // deleted by the task
    int rc;
};

struct proxy {
    volt_frame frame{};
    volt_arm came{}, left{}, signalled{};
    volt_timer limit{};
    volt_group connections{};
    volt_addr target{};
    volt_time idle = 0, deadline = VOLT_NEVER; // deadline: of the drain
    int n_now = 0, n_max = 0;
    long long n_total = 0, n_bytes = 0;
    int listener = -1, signals = -1, signal = 0, client = 0, rc = 0;

    bool is_accepting() const noexcept { return listener >= 0; }
    // Of the arms whose condition does not hold, none can win.
    volt_poll next_client(volt_cx *cx) const noexcept {
        return is_accepting() && n_now < n_max ? volt_accept(cx, listener) : volt_sleep_forever(cx);
    }
    volt_poll next_end(volt_cx *cx) noexcept {
        return n_now > 0 ? volt_group_next(cx, &connections, nullptr) : volt_sleep_forever(cx);
    }
    void start_connection(volt_cx *cx) noexcept;
    void stop_accepting(volt_cx *cx) noexcept {
        volt_close(cx, std::exchange(listener, -1));
        deadline = volt_now() + drain_time;
    }
    void print() const noexcept {
        std::fprintf(stderr, "%d connections, %lld in all, %lld bytes\n", n_now, n_total, n_bytes);
    }
};

// The result is the number of bytes that were relayed.
volt_poll connection_run(volt_cx *cx, void *arg) noexcept {
    auto *const c = static_cast<connection *>(arg);
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc,
               volt_within(cx, &c->limit, connect_time, volt_connect(cx, &c->owner->target)));
    if (c->rc >= 0) {
        c->owned->begin(descriptor{ volt_cx_rt(cx), c->rc }, c->owner->idle);
        VOLT_AWAIT(c->rc, volt_relay(cx, &c->owned->relay));
    }
    const std::unique_ptr<session> ended{ c->owned };
    if (c->rc < 0) { // a cut stream must not look like a complete one
        ended->client.abort();
        ended->target.abort();
    }
    VOLT_END(static_cast<std::int64_t>(ended->copied()));
}

void proxy::start_connection(volt_cx *cx) noexcept {
    descriptor accepted{ volt_cx_rt(cx), client };
    std::unique_ptr<session> owned{ new (std::nothrow)
                                        session{ volt_cx_rt(cx), std::move(accepted) } };
    if (!owned || VOLT_GROUP_SPAWN(cx, &connections, connection_run,
                                   connection{ {}, {}, this, owned.get(), 0 }) < 0)
        return;
    static_cast<void>(owned.release()); // the task may have deleted it already
    n_now++;
    n_total++;
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
        if (p->left.fired) {
            p->n_now--;
            p->n_bytes += p->left.value;
        } else if (p->came.fired && p->client >= 0) {
            p->start_connection(cx);
        } else if (p->signalled.fired && p->signal == SIGUSR1) {
            p->print();
        } else if (p->is_accepting()) { // a signal to stop, or no more clients can be accepted
            p->stop_accepting(cx);
        } else {
            break;
        }
    }
    VOLT_AWAIT(volt_group_close(cx, &p->connections)); // cuts those that are left
    volt_close(cx, p->signals);
    p->print();
    VOLT_END(p->client < 0 ? p->client : 0);
}

// Raises the limit of descriptors, whose default is too low.
int connections_allowed() noexcept {
    rlimit fds{};
    getrlimit(RLIMIT_NOFILE, &fds);
    fds.rlim_cur = fds.rlim_max;
    setrlimit(RLIMIT_NOFILE, &fds);
    return static_cast<int>(std::min(fds.rlim_max / connection_fds, connections_max));
}

} // namespace

int main(int argc, char **argv) {
    constexpr int signals[] = { SIGINT, SIGTERM, SIGUSR1 };
    proxy p;
    volt_addr at{};
    if (argc < 3 || volt_addr_parse(&at, argv[1]) < 0 || volt_addr_parse(&p.target, argv[2]) < 0) {
        std::fprintf(stderr, "usage: %s LISTEN_ADDR TARGET_ADDR [IDLE_SECONDS]\n", argv[0]);
        return 2;
    }
    volt_config config{};
    config.log.fn = [](void *, int, const char *text) { std::fprintf(stderr, "%s\n", text); };
    p.idle = VOLT_S(argc > 3 ? std::atoi(argv[3]) : idle_seconds);
    p.n_max = connections_allowed();
    p.signals = volt_signals_open(signals, std::size(signals));
    p.listener = p.signals < 0 ? p.signals : volt_listen_addr(&at, nullptr);
    const int rc = p.listener < 0 ? p.listener : volt_run(&config, proxy_run, &p);
    if (rc < 0) std::fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
