// SPDX-License-Identifier: MIT OR 0BSD
// The state of a runtime as OpenMetrics text, for Prometheus and its like. A family has a type, a
// help text and its samples; "# EOF" is the end. Include volt.h first.
#ifndef EXAMPLE_SERVICE_METRICS_H
#define EXAMPLE_SERVICE_METRICS_H

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
// A family in seconds, whose name ends in _seconds.
static void metrics_seconds(FILE *f, const char *name, const char *type, const char *help,
                            double value) {
    fprintf(f, "# TYPE %s %s\n# UNIT %s seconds\n# HELP %s %s.\n%s%s %.9f\n", name, type, name,
            name, help, name, *type == 'c' ? "_total" : "", value);
}
// Durations from 1 us to 17 s; below and above there are the first and the last bucket. There is no
// sum, since the runtime keeps none.
enum { METRICS_FIRST = 10, METRICS_LAST = 34 }; // powers of two, in ns
static void metrics_histogram(FILE *f, const char *name, const char *help, const uint64_t *counts) {
    uint64_t n = 0;
    int next = 0;
    fprintf(f, "# TYPE %s histogram\n# UNIT %s seconds\n# HELP %s %s.\n", name, name, name, help);
    for (int i = METRICS_FIRST; i <= METRICS_LAST; i++) {
        while (next <= i) n += counts[next++]; // element i counts those below 2^i ns
        fprintf(f, "%s_bucket{le=\"%.9f\"} %" PRIu64 "\n", name, (double)(UINT64_C(1) << i) / 1e9,
                n);
    }
    while (next < VOLT_HISTOGRAM) n += counts[next++];
    fprintf(f, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, n);
}

// Appends the families of the runtime.
//   where  : any thread
static void metrics_runtime(FILE *f, volt_rt *rt) {
    static volt_latency_histograms none;
    volt_counters c;
    volt_health_report health = { 0, 0, NULL };
    volt_latency_histograms times = none;
    volt_stats(rt, &c);
    metrics_counter(f, "volt_tasks_spawned", "Tasks that were started", c.spawned);
    metrics_counter(f, "volt_tasks_completed", "Tasks that have ended", c.completed);
    metrics_counter(f, "volt_polls", "Calls of task functions", c.polls);
    metrics_counter(f, "volt_steals", "Times that a worker has taken tasks of another", c.steals);
    metrics_counter(f, "volt_parks", "Times that a worker has gone to sleep", c.parks);
    metrics_counter(f, "volt_events", "Events of descriptors", c.events);
    metrics_counter(f, "volt_timers_fired", "Timers that have ended", c.timers_fired);
    metrics_counter(f, "volt_tasks_rescued", "Tasks taken from stuck workers", c.rescued);
    metrics_counter(f, "volt_blocking_calls", "Calls of the thread pool", c.blocking_jobs);
    metrics_seconds(f, "volt_busy_seconds", "counter", "Time that the workers were awake",
                    (double)c.busy_ns / 1e9);
    metrics_gauge(f, "volt_workers", "Workers as configured", (double)c.workers);
    metrics_gauge(f, "volt_workers_started", "Workers that run", (double)c.workers_started);
    metrics_gauge(f, "volt_tasks_queued", "Tasks that wait for a worker", (double)c.queued);
    metrics_gauge(f, "volt_blocking_threads", "Threads of the pool", (double)c.blocking_threads);
    metrics_gauge(f, "volt_blocking_queued", "Calls that wait for a thread",
                  (double)c.blocking_queued);
    if (volt_health(rt, &health) == 0) { // with VOLT_TRACE
        metrics_seconds(f, "volt_longest_poll_seconds", "gauge", "Age of the longest running poll",
                        (double)health.longest_poll / 1e9);
        metrics_seconds(f, "volt_oldest_runnable_seconds", "gauge",
                        "Time that a task has been waiting for a worker",
                        (double)health.oldest_runnable / 1e9);
    }
    if (volt_histograms(rt, &times) == 0) {
        metrics_histogram(f, "volt_poll_seconds", "Durations of polls", times.poll);
        metrics_histogram(f, "volt_wait_seconds", "Times from a wake-up to the poll", times.wait);
    }
}
#endif
