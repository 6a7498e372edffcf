// SPDX-License-Identifier: MIT OR 0BSD
// Looks up several names at once by volt_cares.h: a task for each.
//
//     cc -O2 -I. -pthread examples/adapters/cares.c -o cares -lcares
//     ./cares SERVER NAME...   SERVER: such as 127.0.0.1:53, or - for those of the system
//
// Expected output of ./cares 127.0.0.1:5300 one.test two.test none.test 192.0.2.7, with a server
// that knows one.test and two.test:
// one.test: 192.0.2.1:80
// two.test: 192.0.2.2:80
// none.test: Domain name not found
// 192.0.2.7: 192.0.2.7:80
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_cares.h"
#include <stdio.h>
#include <stdlib.h>

enum { ADDRESSES_MAX = 8, TRY_MS = 250, TRIES = 2 };

typedef struct {
    volt_frame frame;
    volt_cares *resolver;
    volt_cares_query query;
    const char *name;
    volt_addr found[ADDRESSES_MAX];
    int n;
} lookup;

typedef struct {
    volt_frame frame;
    volt_cares resolver;
    lookup *lookups;
    size_t n_lookups;
    const char *server;
    int rc;
} app;

static volt_poll lookup_run(volt_cx *cx, void *arg) {
    lookup *l = (lookup *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->n, volt_cares_resolve(cx, l->resolver, &l->query, l->name, "80", l->found,
                                        ADDRESSES_MAX));
    VOLT_END(l->n);
}

static int open_resolver(volt_cares *c) {
    static char no_files[] = "b"; // DNS alone, without /etc/hosts
    const int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS;
    struct ares_options options;
    memset(&options, 0, sizeof options);
    options.flags = ARES_FLAG_NOSEARCH;
    options.timeout = TRY_MS;
    options.tries = TRIES;
    options.lookups = no_files;
    return volt_cares_open(c, &options, mask);
}

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *a = (app *)arg;
    VOLT_BEGIN(cx, a);
    a->rc = open_resolver(&a->resolver);
    if (a->rc < 0) VOLT_RETURN(a->rc);
    if (a->server && ares_set_servers_ports_csv(a->resolver.channel, a->server) != ARES_SUCCESS)
        a->rc = -EINVAL;
    if (a->rc == 0)
        VOLT_AWAIT(a->rc, volt_join_all(cx, lookup_run, a->lookups, sizeof *a->lookups,
                                        a->n_lookups));
    volt_cares_close(cx, &a->resolver);
    VOLT_END(a->rc);
}

static void print(const lookup *l) {
    char text[VOLT_ADDR_TEXT];
    printf("%s:", l->name);
    if (l->n < 0) printf(" %s", ares_strerror(l->query.status));
    for (int i = 0; i < l->n; i++)
        if (volt_addr_format(&l->found[i], text, sizeof text) > 0) printf(" %s", text);
    printf("\n");
}

int main(int argc, char **argv) {
    static app a;
    if (argc < 3) return fprintf(stderr, "cares SERVER NAME...\n"), 2;
    a.server = strcmp(argv[1], "-") == 0 ? NULL : argv[1];
    a.n_lookups = (size_t)argc - 2;
    a.lookups = (lookup *)calloc(a.n_lookups, sizeof *a.lookups);
    if (!a.lookups) return 1;
    for (size_t i = 0; i < a.n_lookups; i++) {
        a.lookups[i].resolver = &a.resolver;
        a.lookups[i].name = argv[i + 2];
    }
    int rc = volt_run(NULL, app_run, &a);
    for (size_t i = 0; i < a.n_lookups; i++) print(&a.lookups[i]);
    free(a.lookups);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
