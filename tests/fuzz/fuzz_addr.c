// SPDX-License-Identifier: MIT OR 0BSD
// Addresses: any text goes through volt_addr_parse, up to 128 bytes through volt_addr_format. The
// first byte of an input chooses; see fuzz.h for how to run it.
#define VOLT_IMPLEMENTATION
#include "../../volt.h"
#include "fuzz.h"

enum { TEXT_MAX = 200 };

// Formats into a buffer of each length: the same text, or -ENOSPC and no write past the end.
static void check_lengths(const volt_addr *a, const char *text, int n) {
    for (size_t cap = 0; cap <= (size_t)n + 2; cap++) {
        char buf[TEXT_MAX];
        memset(buf, '#', sizeof buf);
        int rc = volt_addr_format(a, buf, cap);
        MUST(rc == (cap > (size_t)n ? n : -ENOSPC));
        MUST(rc < 0 || strcmp(buf, text) == 0);
        for (size_t i = cap; i < sizeof buf; i++) MUST(buf[i] == '#');
    }
}
static int is_decimal(const char *s) {
    size_t n = strspn(s, "0123456789");
    return n > 0 && s[n] == 0;
}
// The text of a parsed address must parse to the same address.
static void check_round_trip(const volt_addr *a, const char *text) {
    char printed[TEXT_MAX], again[TEXT_MAX];
    volt_addr b;
    int n = volt_addr_format(a, printed, sizeof printed);
    MUST(n > 0 && (size_t)n == strlen(printed));
    MUST(volt_addr_parse(&b, printed) == 0);
    MUST(memcmp(a, &b, sizeof b) == 0);
    MUST(volt_addr_format(&b, again, sizeof again) == n && strcmp(printed, again) == 0);
    check_lengths(a, printed, n);
    if (strncmp(text, "unix:", 5) == 0) {
        MUST(strcmp(printed, text) == 0 && volt_addr_port(a) == 0);
        return;
    }
    const char *port = strrchr(text, ':');
    MUST(port && is_decimal(port + 1) && volt_addr_port(a) == atoi(port + 1));
    if (port - text == 1 && text[0] == '*') MUST(strncmp(printed, "[::]:", 5) == 0);
    else MUST((text[0] == '[') == (printed[0] == '['));
}
static void fuzz_parse(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    volt_addr a;
    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    memset(&a, 0xa5, sizeof a);
    int rc = volt_addr_parse(&a, text);
    // only an IPv6 address may name an interface
    MUST(rc == 0 || rc == -EINVAL || (rc == -ENODEV && text[0] == '[' && strchr(text, '%')));
    if (rc == 0) check_round_trip(&a, text);
    free(text);
}
// An address of the system, or any other bytes in its place.
static void fuzz_format(const uint8_t *data, size_t size) {
    struct sockaddr_storage sa;
    char text[TEXT_MAX];
    volt_addr a, b;
    if (size > sizeof sa) return;
    memcpy(&sa, data, size);
    int rc = volt_addr_from(&a, (const struct sockaddr *)&sa, size);
    MUST(rc == (size < 2 || size > 120 ? -EINVAL : 0));
    if (rc < 0) return;
    int port = volt_addr_port(&a);
    MUST(port >= 0 && port <= 65535);
    b = a;
    volt_addr_unmap(&b);
    MUST(volt_addr_equal(&a, &b) && volt_addr_hash(&a) == volt_addr_hash(&b));
    int n = volt_addr_format(&a, text, sizeof text);
    MUST(n == -EAFNOSUPPORT || (n > 0 && (size_t)n == strlen(text)));
    if (n > 0) check_lengths(&a, text, n);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    if (data[0] == '#')
        fuzz_format(data + 1, size - 1);
    else
        fuzz_parse(data, size);
    return 0;
}
