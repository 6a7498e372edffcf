// SPDX-License-Identifier: MIT OR 0BSD
// Work from other threads for a loop of libuv, by its only means: a queue under a mutex, and
// uv_async_send, after which the loop takes the whole queue and runs it.
//
//   outside [ROW...] [--reps N]        default: all rows, 9 repetitions
//
//   S3                    the loop is idle; a thread queues 10,000 items, which it keeps in an
//                         array, then waits for each of them to be done; 20 times
//   S5p1 S5p2 S5p4 S5p8   1, 2, 4, 8 threads queue 12,800 items in total, allocated by them and
//                         freed when they have run; 20 times. Wall time from the first item until
//                         a thread that waits for all continues, without the time between rounds
//
// For the columns see ../../rows/bench.h.
#include "loop.h"
#include <pthread.h>

enum { ROUNDS = 20, S3_ITEMS = 10000, S5_ITEMS = 12800, THREADS_MAX = 8 };

typedef struct item item;
struct item {
    item *next;
    void (*run)(item *);
    int is_done; // S3
};

static loop looped;
static struct queue {
    uv_mutex_t lock;
    item *head, **tail;
    uv_cond_t batch_done; // S3: the thread waits
    int is_waited_for;
} queue;

static void queue_put(item *i) {
    i->next = NULL;
    uv_mutex_lock(&queue.lock);
    *queue.tail = i;
    queue.tail = &i->next;
    uv_mutex_unlock(&queue.lock);
    uv_async_send(&looped.wake);
}

static item *queue_take_all(void) {
    uv_mutex_lock(&queue.lock);
    item *all = queue.head;
    queue.head = NULL;
    queue.tail = &queue.head;
    uv_mutex_unlock(&queue.lock);
    return all;
}

static void tell_waiter(void) {
    uv_mutex_lock(&queue.lock);
    if (queue.is_waited_for) uv_cond_signal(&queue.batch_done);
    uv_mutex_unlock(&queue.lock);
}

static void on_wake(uv_async_t *wake) {
    (void)wake;
    for (item *i = queue_take_all(), *next; i; i = next) {
        next = i->next;
        i->run(i);
    }
    tell_waiter();
}

static void start(void) {
    loop_must(uv_mutex_init(&queue.lock));
    loop_must(uv_cond_init(&queue.batch_done));
    queue.tail = &queue.head;
    loop_start(&looped, on_wake);
}

static void end(void) {
    loop_end(&looped);
    uv_cond_destroy(&queue.batch_done);
    uv_mutex_destroy(&queue.lock);
}

// ---- S3

static item items[S3_ITEMS];

static void run_kept(item *i) {
    peer_done++;
    __atomic_store_n(&i->is_done, 1, __ATOMIC_RELEASE);
}

static int is_done(const item *i) { return __atomic_load_n(&i->is_done, __ATOMIC_ACQUIRE); }

static void await_item(const item *i) {
    if (is_done(i)) return;
    uv_mutex_lock(&queue.lock);
    queue.is_waited_for = 1;
    while (!is_done(i)) uv_cond_wait(&queue.batch_done, &queue.lock);
    queue.is_waited_for = 0;
    uv_mutex_unlock(&queue.lock);
}

static void s3_run(void) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < S3_ITEMS; i++) {
            items[i] = (item){ .run = run_kept };
            queue_put(&items[i]);
        }
        for (int i = 0; i < S3_ITEMS; i++) await_item(&items[i]);
    }
}

// ---- S5

static struct crowd {
    pthread_t threads[THREADS_MAX];
    pthread_barrier_t start;
    int n, is_over;
    int64_t first; // when the first item was queued
    uint32_t left; // of the loop
    uv_sem_t ended;
} crowd;

static void run_detached(item *i) {
    free(i);
    peer_done++;
    if (--crowd.left == 0) uv_sem_post(&crowd.ended);
}

static void note_first(int64_t mine) {
    int64_t seen = __atomic_load_n(&crowd.first, __ATOMIC_RELAXED);
    while (mine < seen && !__atomic_compare_exchange_n(&crowd.first, &seen, mine, 0,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

static void *share_run(void *arg) {
    for (;;) {
        pthread_barrier_wait(&crowd.start);
        if (crowd.is_over) return arg;
        note_first(bench_now());
        for (int k = 0; k < S5_ITEMS / crowd.n; k++) {
            item *i = malloc(sizeof *i);
            if (!i) bench_die("no memory");
            i->run = run_detached;
            queue_put(i);
        }
    }
}

static void s5_start(int n) {
    crowd = (struct crowd){ .n = n };
    pthread_barrier_init(&crowd.start, NULL, (unsigned)n + 1);
    loop_must(uv_sem_init(&crowd.ended, 0));
    start();
    for (int i = 0; i < n; i++)
        if (pthread_create(&crowd.threads[i], NULL, share_run, NULL)) bench_die("no thread");
}
static void s5p1_set_up(void) { s5_start(1); }
static void s5p2_set_up(void) { s5_start(2); }
static void s5p4_set_up(void) { s5_start(4); }
static void s5p8_set_up(void) { s5_start(8); }

static void s5_end(void) {
    crowd.is_over = 1;
    pthread_barrier_wait(&crowd.start);
    for (int i = 0; i < crowd.n; i++) pthread_join(crowd.threads[i], NULL);
    end();
    uv_sem_destroy(&crowd.ended);
    pthread_barrier_destroy(&crowd.start);
}

static void s5_run(void) {
    int64_t counts = 0;
    const int64_t before = bench_now();
    for (int round = 0; round < ROUNDS; round++) {
        crowd.first = INT64_MAX;
        crowd.left = S5_ITEMS;
        pthread_barrier_wait(&crowd.start);
        uv_sem_wait(&crowd.ended);
        counts += bench_now() - crowd.first;
    }
    peer_timed->wall_start += bench_now() - before - counts; // the rest does not count
}

// ---- main

#define S5_ROW(id_, threads_, set_up_)                                                             \
    { id_, "queue from " threads_ " and uv_async_send", ROUNDS * S5_ITEMS, s5_run, set_up_, s5_end }

static const row rows[] = {
    { "S3", "queue from a thread, wait for all", ROUNDS * S3_ITEMS, s3_run, start, end },
    S5_ROW("S5p1", "1 thread", s5p1_set_up),
    S5_ROW("S5p2", "2 threads", s5p2_set_up),
    S5_ROW("S5p4", "4 threads", s5p4_set_up),
    S5_ROW("S5p8", "8 threads", s5p8_set_up),
};

int main(int argc, char **argv) { return peer_main(argc, argv, rows, BENCH_COUNT(rows)); }
