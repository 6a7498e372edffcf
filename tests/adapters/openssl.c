// SPDX-License-Identifier: MIT OR 0BSD
// The test of examples/adapters/volt_openssl.h: that of tls.h, and what is this library's alone.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "tests/lib/test.h"
// For the adapter alone.
static int test_has_no_memory;
static void *test_realloc(void *p, size_t n) { return test_has_no_memory ? NULL : realloc(p, n); }
#define realloc test_realloc
#include "examples/adapters/volt_openssl.h"
#undef realloc

#define TLS_INIT volt_openssl_init
#define TLS_SAYS_EXPIRED "certificate has expired"
#define TLS_SAYS_UNKNOWN "self-signed certificate"
#define TLS_SAYS_OTHER_HOST "ostname mismatch"
#define TLS_SAYS_OTHER_ADDRESS "IP address mismatch"
#define TLS_ONLY_1_2(x_) SSL_CTX_set_max_proto_version(volt_openssl_ctx(x_), TLS1_2_VERSION)
#ifndef SSL_OP_ALLOW_CLIENT_RENEGOTIATION // new in OpenSSL 3, which refuses it otherwise
#  define SSL_OP_ALLOW_CLIENT_RENEGOTIATION 0
#endif
#define TLS_ALLOW_RENEGOTIATION(x_)                                                                \
    (SSL_CTX_clear_options(volt_openssl_ctx(x_), SSL_OP_NO_RENEGOTIATION),                         \
     SSL_CTX_set_options(volt_openssl_ctx(x_), SSL_OP_ALLOW_CLIENT_RENEGOTIATION))
#define TLS_RENEGOTIATE(t_) SSL_renegotiate((SSL *)(t_)->impl)
#define TLS_BOUNDS_1_2 1
static void key_update(SSL *ssl) {
    CHECK(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED));
    CHECK_EQ(SSL_do_handshake(ssl), 1);
}
#define TLS_SAY_NOTHING(t_) key_update((SSL *)(t_)->impl)
#include "tests/adapters/tls.h"

// ---- sessions of TLS 1.2: by a ticket, and by the cache of the server

static void resume_1_2(long options) {
    static sessions s;
    memset(&s, 0, sizeof s);
    contexts();
    TLS_ONLY_1_2(&server_context);
    SSL_CTX_set_options(volt_openssl_ctx(&server_context), (unsigned long)options);
    session_make(&s, 0);
    session_make(&s, 1);
    contexts_free();
}
TEST(session_of_tls_1_2_is_resumed_by_its_ticket_and_by_the_cache) {
    resume_1_2(0);
    resume_1_2(SSL_OP_NO_TICKET);
}

static volt_poll early_save_run(volt_cx *cx, void *arg) {
    sessions *s = (sessions *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    s->n = volt_tls_save(s->d.client, s->session, sizeof s->session);
    CHECK(getenv("TLS_1_2") ? s->n > 0 : s->n == -EAGAIN);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(session_is_saved_only_behind_its_ticket) {
    static sessions s;
    run(1, early_save_run, &s);
}

// ---- a server that asks for a certificate

static volt_poll named_run(volt_cx *cx, void *arg) {
    refusal *r = (refusal *)arg;
    VOLT_BEGIN(cx, r);
    duo_open(&r->d);
    VOLT_AWAIT(r->rc, duo_shake(cx, &r->d));
    CHECK_EQ(r->rc, 0);
    STACK_OF(X509_NAME) *names = SSL_get_client_CA_list((SSL *)r->d.client->impl);
    X509_NAME *own = X509_get_subject_name(SSL_get_certificate((SSL *)r->d.client->impl));
    CHECK_EQ(sk_X509_NAME_num(names), 1);
    CHECK_EQ(X509_NAME_cmp(sk_X509_NAME_value(names, 0), own), 0); // which is its own authority
    duo_close(cx, &r->d);
    VOLT_END(0);
}
TEST(server_that_asks_for_a_certificate_names_the_authorities) {
    static refusal r;
    volt_tls_options o = { .is_server = 1, .alpn = "test", .chain = file("good.pem"),
                           .key = file("good.key"), .authorities = file("good.pem") };
    CHECK_EQ(TLS_INIT(&server_context, &o), 0);
    o.is_server = 0;
    CHECK_EQ(TLS_INIT(&client_context, &o), 0);
    if (getenv("TLS_1_2")) TLS_ONLY_1_2(&server_context);
    run(1, named_run, &r);
}

// ---- a server that chooses a protocol which the client has not offered

static int choose_another(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                          const unsigned char *in, unsigned n_in, void *arg) {
    (void)ssl, (void)in, (void)n_in, (void)arg;
    *out = (const unsigned char *)"tes";
    *n_out = 3;
    return SSL_TLSEXT_ERR_OK;
}
TEST(protocol_that_was_not_offered_is_refused) {
    contexts();
    SSL_CTX_set_alpn_select_cb(volt_openssl_ctx(&server_context), choose_another, NULL);
    refuse("localhost", 1, "", 1);
}

// ---- a peer that asks for answers and does not read them

static volt_poll flood_write(volt_cx *cx, stall *s) {
    call *c = &s->writes;
    VOLT_BEGIN(cx, c);
    do {
        CHECK(SSL_key_update((SSL *)s->d.client->impl, SSL_KEY_UPDATE_REQUESTED));
        VOLT_AWAIT(c->rc, volt_stream_write(cx, of(s->d.client), "x", 1));
    } while (c->rc > 0);
    VOLT_END(c->rc);
}
static volt_poll flood_read(volt_cx *cx, stall *s) {
    call *c = &s->peer;
    VOLT_BEGIN(cx, c);
    do {
        VOLT_AWAIT(c->rc, volt_stream_read(cx, of(s->d.server), s->in, sizeof s->in));
        if (s->n_read < s->d.server->to) s->n_read = s->d.server->to;
    } while (c->rc > 0);
    volt_sock_shutdown(s->d.server->fd, SHUT_RDWR);
    VOLT_END(c->rc);
}
static volt_poll flood_run(volt_cx *cx, void *arg) {
    stall *s = (stall *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(duo_shake(cx, &s->d));
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], flood_write(cx, s)),
                             VOLT_ARM(&s->arm[1], flood_read(cx, s))));
    CHECK_EQ(s->arm[1].value, -ENOMEM);
    CHECK(s->n_read > VOLT_TLS__OUT_MOST - 100 && s->n_read <= VOLT_TLS__OUT_MOST);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(peer_that_asks_for_answers_and_does_not_read_them_is_cut) {
    static stall s;
    if (getenv("TLS_1_2")) SKIP("TLS 1.2 has no key updates");
    run(1, flood_run, &s);
}

// ---- a message behind the handshake of which a part has come

#if OPENSSL_VERSION_NUMBER >= 0x30000000L
enum { TICKET_DATA = 1000, FRAGMENT = 512 }; // FRAGMENT: the least that OpenSSL takes
static int enlarge_ticket(SSL *ssl, void *arg) {
    static const char data[TICKET_DATA];
    (void)arg;
    return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), data, sizeof data);
}
typedef struct {
    volt_frame frame;
    duo d;
    volt_arm arm[3];
    volt_timer limit;
    call all;
    int64_t rc;
    size_t n_first;
    int is_first; // the rest comes before the end is called
    char buf[64];
} ticket;
// Makes a ticket of several records, which the server keeps, but for the first.
static void make_ticket(volt_cx *cx, ticket *k) {
    volt_tls *t = k->d.server;
    SSL *ssl = (SSL *)t->impl;
    t->cx = cx;
    CHECK(SSL_set_max_send_fragment(ssl, FRAGMENT));
    CHECK(SSL_new_session_ticket(ssl));
    CHECK_EQ(SSL_do_handshake(ssl), 1);
    CHECK(t->to > TICKET_DATA);
    k->n_first = 5 + ((size_t)t->out[3] << 8 | t->out[4]);
    CHECK(k->n_first < t->to);
    CHECK_EQ(write(t->fd, t->out, k->n_first), (ssize_t)k->n_first);
    t->from = k->n_first;
}
static volt_poll ticket_read(volt_cx *cx, ticket *k) {
    return volt_stream_read(cx, of(k->d.client), k->buf, sizeof k->buf);
}
static volt_poll ticket_write(volt_cx *cx, ticket *k) { // also sends the rest of the ticket
    return volt_stream_write(cx, of(k->d.server), "hello", 5);
}
static volt_poll ticket_end(volt_cx *cx, ticket *k) { return volt_stream_end(cx, of(k->d.client)); }
// The arms have their first polls in order: the read takes the first record, and waits.
static volt_poll ticket_arms(volt_cx *cx, ticket *k) {
    call *c = &k->all;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, VOLT_JOIN_ALL(
        VOLT_ARM(&k->arm[0], ticket_read(cx, k)),
        VOLT_ARM(&k->arm[1], k->is_first ? ticket_write(cx, k) : ticket_end(cx, k)),
        VOLT_ARM(&k->arm[2], k->is_first ? ticket_end(cx, k) : ticket_write(cx, k))));
    VOLT_END(c->rc);
}
static volt_poll ticket_run(volt_cx *cx, void *arg) {
    ticket *k = (ticket *)arg;
    VOLT_BEGIN(cx, k);
    duo_open(&k->d);
    VOLT_AWAIT(k->rc, duo_shake(cx, &k->d));
    CHECK_EQ(k->rc, 0);
    make_ticket(cx, k);
    VOLT_AWAIT(k->rc, volt_within(cx, &k->limit, VOLT_S(10), ticket_arms(cx, k)));
    printf("%s: read %d, %d, %d\n", k->d.client->why, (int)k->arm[0].value,
           (int)k->arm[1].value, (int)k->arm[2].value);
    CHECK_EQ(k->arm[0].value, 5);
    CHECK_EQ(k->arm[k->is_first ? 2 : 1].value, 0);
    CHECK_EQ(k->rc, 0);
    VOLT_AWAIT(k->rc, volt_stream_read(cx, of(k->d.server), k->buf, sizeof k->buf));
    CHECK_EQ(k->rc, 0); // the end
    duo_close(cx, &k->d);
    VOLT_END(0);
}
TEST(end_waits_for_the_rest_of_a_ticket_and_loses_no_data) {
    if (getenv("TLS_1_2")) SKIP("TLS 1.2 has no tickets behind the handshake");
    for (int i = 0; i < 2; i++) {
        ticket k = { .is_first = i };
        contexts();
        SSL_CTX *server = volt_openssl_ctx(&server_context);
        SSL_CTX_set_num_tickets(server, 0);
        SSL_CTX_set_session_ticket_cb(server, enlarge_ticket, NULL, NULL);
        run(1, ticket_run, &k);
    }
}
#endif

// ---- the queue of errors, which belongs to the thread

static void leave_an_error(void) {
    CHECK_EQ(SSL_CTX_use_certificate_file(volt_openssl_ctx(&server_context), "", SSL_FILETYPE_PEM),
             0);
    CHECK(ERR_peek_error() != 0);
}
static volt_poll noisy_read(volt_cx *cx, state *s) {
    leave_an_error();
    return volt_stream_read(cx, of(s->d.server), s->buf, sizeof s->buf);
}
static volt_poll noisy_write(volt_cx *cx, state *s) {
    leave_an_error();
    return volt_stream_write(cx, of(s->d.client), "some words", 10);
}
static volt_poll noise_run(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], noisy_read(cx, s)),
                             VOLT_ARM(&s->arm[1], noisy_write(cx, s))));
    CHECK_EQ(s->arm[0].value, 10);
    CHECK_EQ(s->arm[1].value, 10);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(errors_that_other_calls_have_left_do_not_matter) {
    static state s;
    run(1, noise_run, &s);
}

// Half of the tasks see garbage, the others a certificate that they do not trust.
enum { FAILURES = 100 };
static volt_poll failure_run(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    if (s->n) VOLT_AWAIT(s->rc, volt_write_all(cx, s->d.server->fd, "some garbage", 12));
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->arm[0], volt_tls_handshake(cx, s->d.client)),
                           VOLT_ARM(&s->arm[1], volt_tls_handshake(cx, s->d.server))));
    CHECK(s->arm[0].fired && s->arm[0].value < 0);
    CHECK_STR(s->d.client->why, s->n ? "wrong version number" : TLS_SAYS_UNKNOWN);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_group all;
    int64_t rc;
} failures;
static volt_poll failures_run(volt_cx *cx, void *arg) {
    failures *f = (failures *)arg;
    VOLT_BEGIN(cx, f);
    for (int i = 0; i < FAILURES; i++)
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &f->all, failure_run, (state){ .n = i % 2 }), 0);
    VOLT_AWAIT(f->rc, volt_group_wait(cx, &f->all));
    VOLT_END(f->rc);
}
TEST(each_of_many_failures_on_several_workers_has_its_own_text) {
    static failures f;
    serve_by("good.pem", "good.key", "test");
    trust("other.pem", "test");
    run(3, failures_run, &f);
}
