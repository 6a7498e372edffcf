// SPDX-License-Identifier: MIT OR 0BSD
// Metrics of a program and of its runtime as OpenMetrics text, for Prometheus and its like. A
// family has a type, a help text and its samples; those of the runtime come from volt_dump_to.
// Include volt.h first.
#ifndef EXAMPLE_SERVICE_METRICS_H
#define EXAMPLE_SERVICE_METRICS_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const char metrics_type[] =
    "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";

// Names and help texts must be literals that need no escapes.
static void metrics_counter(FILE *f, const char *name, const char *help, uint64_t value) {
    fprintf(f, "# TYPE %s counter\n# HELP %s %s.\n%s_total %" PRIu64 "\n", name, name, help, name,
            value);
}
static void metrics_gauge(FILE *f, const char *name, const char *help, double value) {
    fprintf(f, "# TYPE %s gauge\n# HELP %s %s.\n%s %.17g\n", name, name, help, name, value);
}
// Appends the families of the runtime, and the end.
//   where  : any thread
static int metrics_put(void *f, const char *text, size_t len) {
    return fwrite(text, 1, len, (FILE *)f) == len ? 0 : -EIO;
}
static void metrics_end(FILE *f, volt_rt *rt) {
    (void)volt_dump_to(rt, metrics_put, f, VOLT_DUMP_METRICS); // fclose gives the error
}
#endif
