// SPDX-License-Identifier: MIT OR 0BSD
// The load of the TLS echo servers: plain C and OpenSSL, a thread for each connection, blocking
// calls.
//
//   tls_load KIND --port P [--conns 50] [--seconds 1] [--size 512] [--wrong 0]
//
//   echo    messages of --size bytes, which come back
//   churn   the same, a connection with a full handshake for each message
//   resume  the same, with the session of the connection before
// TLS_AUTHORITIES in the environment is the file of the authority; the server is "localhost".
// --wrong 1: changes a byte that has come, which must be noticed. It prints what load.c prints.
#define _GNU_SOURCE 1
#include "../rows/bench.h"
#include "../rows/histogram.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNS_MAX = 256, MESSAGE_MAX = 1 << 20, GRACE = 10 };

typedef struct client {
    pthread_t thread;
    SSL *ssl;
    SSL_SESSION *session;
    uint64_t bytes, errors, n_resumed;
    int64_t last;
    unsigned id;
    char *out, *in;
    histogram latency;
} client;

static double port, conns = 50, seconds = 1, size = 512, wrong;
static int is_churn, is_resumed;
static SSL_CTX *ctx;
static int64_t start, stop;
static pthread_barrier_t ready;

static int client_open(client *c) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        bench_die("connect: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->ssl = SSL_new(ctx);
    if (!c->ssl || !SSL_set_fd(c->ssl, fd) || !SSL_set1_host(c->ssl, "localhost"))
        bench_die("out of memory");
    if (c->session) SSL_set_session(c->ssl, c->session);
    return SSL_connect(c->ssl) == 1;
}
static void client_close(client *c) {
    const int fd = SSL_get_fd(c->ssl);
    if (is_resumed) {
        SSL_SESSION_free(c->session);
        c->session = SSL_get1_session(c->ssl);
        c->n_resumed += (uint64_t)SSL_session_reused(c->ssl);
    }
    SSL_shutdown(c->ssl);
    SSL_free(c->ssl);
    close(fd);
}
// A message there and back.
static int client_ask(client *c) {
    const int len = (int)size;
    if (SSL_write(c->ssl, c->out, len) != len) return 0;
    for (int have = 0, n; have < len; have += n) {
        n = SSL_read(c->ssl, c->in + have, len - have);
        if (n <= 0) return 0;
    }
    c->in[len / 2] ^= (char)wrong;
    if (memcmp(c->in, c->out, (size_t)len) != 0) return 0;
    c->bytes += (uint64_t)len;
    return 1;
}
static void *client_run(void *arg) {
    client *c = arg;
    uint64_t word = c->id;
    c->out = malloc((size_t)size), c->in = malloc((size_t)size);
    if (!c->out || !c->in) bench_die("out of memory");
    for (size_t i = 0; i < (size_t)size; i++) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        c->out[i] = (char)(word >> 56);
    }
    int is_right = is_churn || client_open(c);
    pthread_barrier_wait(&ready); // all are connected
    pthread_barrier_wait(&ready); // the time begins
    while (is_right && bench_now() < stop) {
        const int64_t began = bench_now();
        c->out[0]++;
        is_right = (!is_churn || client_open(c)) && client_ask(c);
        if (is_right) histogram_add(&c->latency, (uint64_t)((c->last = bench_now()) - began));
        if (is_churn) client_close(c);
    }
    if (!is_churn) client_close(c);
    c->errors += !is_right || c->latency.n == 0 || (is_resumed && c->n_resumed + 1 < c->latency.n);
    SSL_SESSION_free(c->session);
    free(c->out), free(c->in);
    return NULL;
}

static void context_make(void) {
    const char *authorities = getenv("TLS_AUTHORITIES");
    ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || !authorities || !SSL_CTX_load_verify_locations(ctx, authorities, NULL))
        bench_die("TLS_AUTHORITIES: not a file of certificates");
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
}

int main(int argc, char **argv) {
    static client clients[CONNS_MAX];
    const bench_option table[] = {
        { "--port", &port, 1, 65535 },     { "--conns", &conns, 1, CONNS_MAX },
        { "--seconds", &seconds, 0.01, 60 }, { "--size", &size, 1, MESSAGE_MAX },
        { "--wrong", &wrong, 0, 1 },
    };
    const int n_words = bench_options(argc, argv, table, BENCH_COUNT(table));
    const char *kind = n_words > 0 ? argv[1] : "";
    is_resumed = strcmp(kind, "resume") == 0;
    is_churn = is_resumed || strcmp(kind, "churn") == 0;
    if (n_words != 1 || port < 1 || (!is_churn && strcmp(kind, "echo") != 0))
        bench_die("usage: tls_load echo|churn|resume --port P [--conns, --seconds, --size N]");
    const unsigned n = (unsigned)conns;
    client sum = { .last = 0 };
    signal(SIGPIPE, SIG_IGN);
    alarm((unsigned)seconds + GRACE); // if all else fails
    context_make();
    pthread_barrier_init(&ready, NULL, n + 1);
    for (unsigned i = 0; i < n; i++) {
        clients[i].id = i;
        if (pthread_create(&clients[i].thread, NULL, client_run, &clients[i]) != 0)
            bench_die("pthread_create");
    }
    pthread_barrier_wait(&ready);
    start = bench_now();
    stop = start + (int64_t)(seconds * 1e9);
    pthread_barrier_wait(&ready);
    for (unsigned i = 0; i < n; i++) {
        pthread_join(clients[i].thread, NULL);
        histogram_merge(&sum.latency, &clients[i].latency);
        sum.bytes += clients[i].bytes;
        sum.errors += clients[i].errors;
        if (clients[i].last > sum.last) sum.last = clients[i].last;
    }
    const double took = (double)(sum.last - start) / 1e9;
    printf("requests %" PRIu64 "\nper_second %.0f\n", sum.latency.n,
           took > 0 ? (double)sum.latency.n / took : 0);
    printf("p50_us %.1f\np99_us %.1f\n", histogram_ns(&sum.latency, 0.5) / 1000,
           histogram_ns(&sum.latency, 0.99) / 1000);
    printf("bytes_checked %" PRIu64 "\ncpu_us %" PRId64 "\nerrors %" PRIu64 "\n", sum.bytes,
           bench_cpu() / 1000, sum.errors);
    pthread_barrier_destroy(&ready);
    SSL_CTX_free(ctx);
    return sum.latency.n == 0 || sum.errors > 0;
}
