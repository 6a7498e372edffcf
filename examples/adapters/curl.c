// SPDX-License-Identifier: MIT OR 0BSD
// Fetches several URLs at once by volt_curl.h: a task for each, with a time limit of its own. The
// tasks share the connections of one volt_curl.
//
//     cc -O2 -I. -pthread examples/adapters/curl.c -o curl -lcurl
//     ./curl SECONDS AUTHORITIES URL...     AUTHORITIES: a file in PEM for HTTPS, or - for none
//
// Expected output of ./curl 1 - http://127.0.0.1:8080/ http://127.0.0.1:8080/nothing
// http://127.0.0.1:8081/ with 06_http at 8080 and a server that does not answer at 8081:
// 200, 52 bytes
// 404, 9 bytes
// timed out (ETIMEDOUT)
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_curl.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_curl *curl;
    volt_curl_transfer transfer;
    CURL *easy;
    volt_time at_most;
    const char *url, *authorities;
    long status;
    size_t n_bytes;
    int rc;
} fetch;

typedef struct {
    volt_frame frame;
    volt_curl curl;
    fetch *fetches;
    size_t n_fetches;
    int rc;
} app;

// Called by any worker while the task of the fetch waits.
static size_t on_body(char *bytes, size_t size, size_t n, void *user) {
    fetch *f = (fetch *)user;
    (void)bytes;
    f->n_bytes += size * n;
    return size * n;
}
static CURL *handle_of(fetch *f) {
    CURL *easy = curl_easy_init();
    if (!easy) return NULL;
    curl_easy_setopt(easy, CURLOPT_URL, f->url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, f);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L); // one connection for all of HTTP/2
    if (f->authorities) curl_easy_setopt(easy, CURLOPT_CAINFO, f->authorities);
    return easy;
}

static volt_poll fetch_run(volt_cx *cx, void *arg) {
    fetch *f = (fetch *)arg;
    VOLT_BEGIN(cx, f);
    f->easy = handle_of(f);
    VOLT_AWAIT(f->rc, volt_within(cx, &f->limit, f->at_most,
                                  volt_curl_perform(cx, f->curl, &f->transfer, f->easy)));
    if (f->rc == 0) curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &f->status);
    curl_easy_cleanup(f->easy);
    VOLT_END(f->rc);
}

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *a = (app *)arg;
    VOLT_BEGIN(cx, a);
    a->rc = volt_curl_open(&a->curl);
    if (a->rc < 0) VOLT_RETURN(a->rc);
    VOLT_AWAIT(a->rc, volt_join_all(cx, fetch_run, a->fetches, sizeof *a->fetches, a->n_fetches));
    volt_curl_close(cx, &a->curl);
    VOLT_END(a->rc);
}

static void print(const fetch *f) {
    if (f->rc == 0) printf("%ld, %zu bytes\n", f->status, f->n_bytes);
    else if (f->rc == -ETIMEDOUT) printf("%s\n", volt_strerror(f->rc));
    else printf("%s\n", curl_easy_strerror(f->transfer.code));
}

int main(int argc, char **argv) {
    static app a;
    if (argc < 4) return fprintf(stderr, "curl SECONDS AUTHORITIES URL...\n"), 2;
    a.n_fetches = (size_t)argc - 3;
    a.fetches = (fetch *)calloc(a.n_fetches, sizeof *a.fetches);
    if (!a.fetches) return 1;
    for (size_t i = 0; i < a.n_fetches; i++) {
        a.fetches[i].curl = &a.curl;
        a.fetches[i].at_most = VOLT_S(atoi(argv[1]));
        a.fetches[i].authorities = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
        a.fetches[i].url = argv[i + 3];
    }
    signal(SIGPIPE, SIG_IGN);
    int rc = volt_run(NULL, app_run, &a);
    for (size_t i = 0; i < a.n_fetches; i++) print(&a.fetches[i]);
    free(a.fetches);
    return rc < 0;
}
