// SPDX-License-Identifier: MIT OR 0BSD
// libcurl's multi interface: one task drives it, any other may request transfers.
//
// A library that does not wait itself reports its waits: libcurl calls on_socket for its
// descriptors and on_timer for its deadline. Neither has a volt_cx or needs one: a poll set takes
// effect at once, and the next round of the select reads the deadline again. Requests are pointers
// that come through a pipe; the requesting task waits for a token.
//
//     cc -I. -pthread examples/08_curl.c -lcurl -o curl && ./curl http://127.0.0.1:8080
//
// Expected output, with 06_http at that address (the third server never answers):
// /: 200, 52 bytes
// /nothing: 404, 9 bytes
// silent: 0, 0 bytes
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

typedef struct transfer {
    volt_frame frame;
    volt_shield lent;
    volt_token done; // until then the driver borrows the transfer
    struct transfer *self;
    char url[128];
    long status;
    size_t n_bytes;
} transfer;

typedef struct {
    volt_frame frame;
    volt_arm sock, tick, todo;
    volt_pollset set;
    volt_pollev ev[16];
    volt_time due;
    CURLM *multi;
    transfer *next; // the next to begin
    int n;
} driver;

static int requests[2]; // a pipe; a pointer is shorter than PIPE_BUF, so writes are atomic
static transfer transfers[3];

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *of_socket) {
    static const uint32_t want[] = { 0, VOLT_IN, VOLT_OUT, VOLT_IN | VOLT_OUT, 0 /* remove */ };
    (void)easy, (void)of_socket;
    return volt_pollset_set(&((driver *)user)->set, fd, want[what]) < 0 ? -1 : 0;
}
static int on_timer(CURLM *multi, long ms, void *user) {
    (void)multi;
    ((driver *)user)->due = ms < 0 ? VOLT_NEVER : volt_now() + VOLT_MS(ms); // 0 means soon, not now
    return 0;
}
static size_t on_body(char *bytes, size_t size, size_t n, void *user) {
    (void)bytes;
    ((transfer *)user)->n_bytes += size * n;
    return size * n;
}

static void begin(driver *d, transfer *t) {
    CURL *easy = curl_easy_init(); // NULL is refused below
    curl_easy_setopt(easy, CURLOPT_URL, t->url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 1000L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L); // signal handlers are the application's
    if (curl_multi_add_handle(d->multi, easy) == CURLM_OK) return;
    curl_easy_cleanup(easy);
    volt_token_cancel(&t->done);
}

static void act(driver *d, curl_socket_t fd, uint32_t events) {
    int n, in = events & ~(uint32_t)VOLT_OUT ? CURL_CSELECT_IN : 0;
    curl_multi_socket_action(d->multi, fd, in | (events & VOLT_OUT ? CURL_CSELECT_OUT : 0), &n);
    for (CURLMsg *m; (m = curl_multi_info_read(d->multi, &n)) != NULL;) {
        CURL *easy = m->easy_handle;
        transfer *t;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &t->status);
        curl_multi_remove_handle(d->multi, easy);
        curl_easy_cleanup(easy);
        volt_token_cancel(&t->done); // *t belongs to its owner again
    }
}

static volt_poll transfer_run(volt_cx *cx, void *arg) {
    transfer *t = (transfer *)arg;
    VOLT_BEGIN(cx, t);
    t->self = t;
    volt_shield_begin(cx, &t->lent, VOLT_NEVER); // libcurl's time limit bounds it
    VOLT_AWAIT(volt_write_all(cx, requests[1], &t->self, sizeof t->self));
    VOLT_AWAIT(volt_token_wait(cx, &t->done));
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    int rc;
} asker;

static volt_poll asker_run(volt_cx *cx, void *arg) {
    asker *a = (asker *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->rc, volt_join_all(cx, VOLT_EACH(transfer_run, transfers)));
    volt_close(cx, requests[1]);
    VOLT_END(a->rc);
}

static volt_poll driver_run(volt_cx *cx, void *arg) {
    driver *d = (driver *)arg;
    VOLT_BEGIN(cx, d);
    d->n = VOLT_SPAWN(cx, NULL, asker_run, (asker){ .rc = 0 });
    if (d->n < 0) VOLT_RETURN(d->n);
    do { // until the last possible sender has closed the pipe
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&d->sock, d->n, volt_pollset_wait(cx, &d->set, d->ev, 16)),
            VOLT_ARM(&d->tick, volt_sleep_until(cx, d->due)),
            VOLT_ARM(&d->todo, d->n, volt_read(cx, requests[0], &d->next, sizeof d->next))));
        if (d->tick.fired) d->due = VOLT_NEVER, act(d, CURL_SOCKET_TIMEOUT, 0);
        for (int i = 0; d->sock.fired && i < d->n; i++) act(d, d->ev[i].fd, d->ev[i].events);
        if (d->todo.fired && d->n > 0) begin(d, d->next);
    } while (!d->todo.fired || d->n > 0);
    volt_pollset_close(cx, &d->set);
    VOLT_END(0);
}

int main(int argc, char **argv) {
    static const char *const names[] = { "/", "/nothing", "silent" };
    static driver d = { .due = VOLT_NEVER };
    volt_addr addr;
    int silent = volt_listen("127.0.0.1", 0, NULL); // a server that never accepts
    if (argc < 2 || volt_local_addr(silent, &addr) < 0 || volt_pollset_open(&d.set) < 0) return 1;
    if (pipe2(requests, O_CLOEXEC) < 0 || curl_global_init(CURL_GLOBAL_ALL)) return 1;
    d.multi = curl_multi_init();
    curl_multi_setopt(d.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(d.multi, CURLMOPT_SOCKETDATA, &d);
    curl_multi_setopt(d.multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(d.multi, CURLMOPT_TIMERDATA, &d);
    for (int i = 0; i < 2; i++) snprintf(transfers[i].url, 128, "%s%s", argv[1], names[i]);
    snprintf(transfers[2].url, 128, "http://127.0.0.1:%d/", volt_addr_port(&addr));
    int rc = volt_run(NULL, driver_run, &d);
    for (int i = 0; i < 3; i++)
        printf("%s: %ld, %zu bytes\n", names[i], transfers[i].status, transfers[i].n_bytes);
    curl_multi_cleanup(d.multi);
    curl_global_cleanup();
    return rc < 0;
}
